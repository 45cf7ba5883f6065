"""The all-reduce probe before training: what it measures, what it is compared with, and a real one over two hosts with gloo."""

import json
from pathlib import Path

import pytest
from test_mpi import mpi_world, needs_mpi, shim  # noqa: F401

from slipway_driver.expected_bandwidth import EXPECTED, bus_bandwidth_gbps, line_rate_gbps
from slipway_driver.probe import judged, verdict_line
from slipway_driver.tables import EFA_INSTANCES

pytestmark = pytest.mark.jobs


def test_bus_bandwidth_follows_nccl_tests() -> None:
    assert bus_bandwidth_gbps(1 << 30, 0.01, 16) == pytest.approx(1.073741824e11 / 1e9 * 15 / 8)
    assert bus_bandwidth_gbps(1 << 30, 0.01, 1) == 0


@pytest.mark.parametrize("instance_type", EXPECTED)
def test_what_is_expected_is_physically_possible_and_has_a_source(instance_type: str) -> None:
    expected, rate = EXPECTED[instance_type], line_rate_gbps(instance_type)
    assert instance_type in EFA_INSTANCES and rate is not None and expected.source
    # Two hosts may be above the line rate (tree), by less than a factor of two.
    assert 0.3 * rate < expected.bus_gbps < (2 * rate if expected.hosts == 2 else rate)


@pytest.mark.parametrize(
    ("instance_type", "got", "says"),
    [
        ("ml.p5.48xlarge", 430.0, "; 437 GB/s were measured elsewhere"),
        ("ml.p5.48xlarge", 5.0, "LOW: 437 GB/s were measured elsewhere"),
        ("ml.p5.48xlarge", 200.0, "50 % of the line rate; LOW"),
        ("ml.g5.48xlarge", 3.0, "24 % of the line rate; there is no reference value"),
        ("ml.m5.large", 1.0, "1.00 GB/s bus bandwidth; there is no reference"),
    ],
)
def test_the_log_says_how_good_it_is(instance_type: str, got: float, says: str) -> None:
    found = judged({"busBandwidthGBps": got}, instance_type)
    assert says in verdict_line(found)
    expected = EXPECTED.get(instance_type)
    assert found["expectedGBps"] == (expected.bus_gbps if expected else None)


@needs_mpi
@pytest.mark.torch
def test_a_probe_over_two_hosts_comes_before_training_and_stands_in_the_verdict(tmp_path: Path, shim: str) -> None:  # noqa: F811
    pytest.importorskip("torch")
    script = """print("training", flush=True)\nprint('slipway {"event":"step","step":1}', flush=True)\n"""
    world = mpi_world(tmp_path, shim, script, hosts=2, processesPerHost=1, env={"SLIPWAY_PROBE_SECONDS": "0.3"})
    assert world.wait() == [0, 0], world.log("algo-1") + world.log("algo-2")
    log = world.log("algo-1")
    probe = world.events("algo-1", "probe")[0]
    assert (probe["ranks"], probe["bytes"], probe["expectedGBps"]) == (2, 4 << 20, None)
    assert probe["busBandwidthGBps"] == pytest.approx(bus_bandwidth_gbps(4 << 20, probe["seconds"], 2), rel=0.01, abs=0.001)
    assert probe["busBandwidthGBps"] > 0
    assert log.index('"event":"probe"') < log.index("training")
    assert world.events("algo-2", "probe") == []
    written = json.loads((world.base("algo-1") / "output/data/efa.json").read_text())
    assert written["busBandwidthGBps"] == probe["busBandwidthGBps"]


@needs_mpi
def test_a_probe_that_fails_does_not_keep_training_from_starting(tmp_path: Path, shim: str) -> None:  # noqa: F811
    broken = tmp_path / "broken/torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no torch for the probe')\n")
    env = {"SLIPWAY_PROBE_SECONDS": "0.3", "PYTHONPATH": f"{broken.parent}:{Path(__file__).parents[2]}/containers/driver"}
    world = mpi_world(tmp_path, shim, "print('training', flush=True)\n", hosts=1, processesPerHost=1, env=env)
    assert world.wait() == [0], world.log("algo-1")
    assert "training starts anyway" in world.log("algo-1")
    assert world.log("algo-1").count("[rank 0] training") == 1
    assert world.events("algo-1", "probe") == []
