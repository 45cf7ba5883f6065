"""The health gate: what NVIDIA's tools answer, who is refused, and whole jobs in which a bad host is replaced before its first step."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Optional, Sequence

import pytest

from fake_world import REPOSITORY, FakeWorld, job_json, with_gpus
from slipway_driver import health_answers as answers
from slipway_driver.health_gate import DCGM, QUICK, HealthGate, Place, count_findings, speed_findings
from slipway_driver.health_rank import run_ranks

P5 = Place("algo-2", "ml.p5.48xlarge", 32, True)
EIGHT = "\n".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n})" for n in range(8))
#: Two GPUs, the second with links down, as `nvidia-smi nvlink --status` prints them.
LINKS = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
"""
DIAGNOSIS = """some words first
{"DCGM Diagnostic": {"test_categories": [{"category": "Integration", "tests": [
  {"name": "PCIe", "results": [{"gpu_id": "0", "status": "Pass"}, {"gpu_id": "1", "status": "Fail"}]},
  {"name": "Memory", "results": [{"gpu_id": "0", "status": "Pass"}]}]}]}}"""


def reasons(found: "list[answers.Finding]") -> "list[tuple[str, bool]]":
    return [(finding.reason, finding.refuses) for finding in found]


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        ("memory", "0, 0\n1, 2\n", [("GPU 1 has 2 uncorrectable memory errors", True)]),
        ("memory", "0, [N/A]\n", []),
        (
            "remap",
            "00000000:53:00.0, No, No\n00000000:64:00.0, Yes, No\n",
            [("GPU at 00000000:64:00.0 needs a reset to remap a memory row", True)],
        ),
        ("remap", "00000000:53:00.0, 0, 1\n", [("GPU at 00000000:53:00.0 has no spare memory rows left", True)]),
        ("remap", "Field is not supported\n", []),
        ("clock", "0, Not Active, Not Active\n1, Active, Not Active\n", [("GPU 1 runs at lower clocks because of heat", False)]),
        ("link", LINKS, [("GPU 1 has 1 of 2 NVLinks inactive", True)]),
        ("link", "GPU 0: NVIDIA L4 (UUID: GPU-0)\n\t Link 0: <inactive>\n", []),
        (
            "xid",
            "NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus.\n" * 2,
            [("the kernel has logged Xid 79 of PCI:0000:53:00", True)],
        ),
        ("xid", "NVRM: Xid (PCI:0000:53:00): 31, pid=1, name=python, MMU Fault\n", []),
        ("dcgm", DIAGNOSIS, [("DCGM's test PCIe fails", True)]),
        ("dcgm", "Error: unable to establish a connection to the specified host: localhost\n", []),
    ],
)
def test_what_a_tool_says_is_found_and_nothing_else(read: str, text: str, found: "list[tuple[str, bool]]") -> None:
    assert reasons(getattr(answers, read + "_findings")(text)) == found


@pytest.mark.parametrize("read", ["memory", "remap", "clock", "link", "xid", "dcgm"])
@pytest.mark.parametrize(
    "text", [None, "", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "a, b, c, d, e\n", "{"]
)
def test_an_answer_that_is_not_understood_says_nothing(read: str, text: Optional[str]) -> None:
    assert getattr(answers, read + "_findings")(text) == []


@pytest.mark.parametrize(
    ("place", "gpus", "found"),
    [
        (P5, EIGHT, []),
        (P5, EIGHT.rsplit("\n", 1)[0], [("7 of 8 GPUs respond", True)]),
        (P5, "", [("0 of 8 GPUs respond", True)]),
        (P5, None, []),
        (P5._replace(efa_devices=31), EIGHT, [("31 of 32 EFA devices are present", True)]),
        (P5._replace(efa_devices=31, efa_needed=False), EIGHT, [("31 of 32 EFA devices are present", False)]),
        (P5._replace(efa_devices=0), EIGHT, []),
        (P5._replace(instance_type="ml.unheard.of"), "", []),
    ],
)
def test_devices_are_counted_against_the_type(place: Place, gpus: Optional[str], found: "list[tuple[str, bool]]") -> None:
    assert reasons(count_findings(place, gpus)) == found


def test_a_gpu_far_slower_than_its_neighbours_refuses_and_a_slow_host_is_told() -> None:
    assert reasons(speed_findings(P5, [700, 690, 500])) == [("GPU 2: 500 TFLOP/s in matrix multiplication, another GPU: 700", True)]
    slow = "the fastest GPU: 400 TFLOP/s in matrix multiplication; the peak of its type is 989"
    assert reasons(speed_findings(P5, [400, 400])) == [(slow, False)]
    assert speed_findings(P5, [700, 680]) == [] and speed_findings(P5, []) == []


class Tools:
    """Answers by the name of the question; counts what was asked."""

    def __init__(self, **said: str) -> None:
        self.said, self.asked = said, []

    def __call__(self, command: Sequence[str], seconds: float) -> Optional[str]:
        name = next((name for name, known in QUICK.items() if tuple(known) == tuple(command)), "dcgm" if tuple(command) == DCGM else "")
        self.asked.append(name)
        return self.said.get(name)


def test_off_asks_nothing_quick_asks_once_and_full_measures_a_host_that_is_not_refused_yet() -> None:
    off, quick, full, bad = (Tools(gpus=EIGHT) for _ in range(4))
    bad.said["memory"] = "3, 1\n"
    measured = []

    def measure(_stopped: threading.Event) -> "dict[str, object]":
        measured.append(1)
        return {"tflops": [700.0, 100.0]}

    assert HealthGate("off", P5, off, measure).check() is None and off.asked == []
    gate = HealthGate("quick", P5, quick, measure)
    assert gate.check() is None and gate.check() is None
    assert sorted(quick.asked) == sorted(QUICK) and measured == []
    end = HealthGate("full", P5, full, measure).check()
    assert end is not None and (end.code, end.kind) == (75, "hardware")
    assert end.reason == "health check before training: GPU 1: 100 TFLOP/s in matrix multiplication, another GPU: 700"
    assert full.asked[-1] == "dcgm"
    end = HealthGate("full", P5, bad, measure).check()
    assert end is not None and "GPU 3 has 1 uncorrectable memory errors" in end.reason and len(measured) == 1


def test_the_measurements_of_two_ranks_on_this_machine(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environ = dict(os.environ, PYTHONPATH=str(REPOSITORY / "containers/driver"), OMP_NUM_THREADS="1")
    found = run_ranks(sys.executable, environ, tmp_path, 2, threading.Event())
    assert found is not None and len(found["tflops"]) == 2 and min(found["tflops"]) > 0 and found["busBandwidthGBps"] > 0


def test_a_stop_ends_the_measurements(tmp_path: Path) -> None:
    stopped = threading.Event()
    stopped.set()
    assert run_ranks(sys.executable, dict(os.environ), tmp_path, 2, stopped) is None


#: The other host waits for algo-2 as ranks wait for each other at their rendezvous.
SCRIPT = """
import json, os, time
if os.environ["SM_CURRENT_HOST"] != "algo-2" and "algo-2" in json.loads(os.environ["SM_HOSTS"]):
    time.sleep(600)
for step in range(1, 4):
    print("slipway " + json.dumps({"event": "step", "step": step}), flush=True)
print("trained as rank", json.loads(os.environ["SM_HOSTS"]).index(os.environ["SM_CURRENT_HOST"]), flush=True)
"""


def gated_world(tmp_path: Path, hosts: int, spares: int) -> FakeWorld:
    """The GPUs of algo-2 have an uncorrectable error when the job begins."""
    (tmp_path / "checkpoints").mkdir()
    checkpoints = {"mode": "direct", "uri": str(tmp_path / "checkpoints"), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"}
    job = job_json(restartsInPlace=3, checkpoints=checkpoints, spareInstances=spares, healthCheck="quick")
    world = FakeWorld(tmp_path / "world", hosts, job, {"train.py": SCRIPT}, name=f"gate-{tmp_path.name}")
    (world.base("algo-2") / "gpus").write_text("0, 0\n1, 4\n")
    world.start(with_gpus(tmp_path))
    return world


def test_a_spare_host_takes_the_place_of_a_bad_one_before_the_first_step(tmp_path: Path) -> None:
    world = gated_world(tmp_path, 3, 1)
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    assert "trained as rank 1" in world.log("algo-3") and "trained as" not in world.log("algo-2")
    restart = world.events("algo-1", "restart")[0]
    assert (restart["host"], restart["replaced"]) == ("algo-2", {"algo-2": "algo-3"})
    assert "GPU 1 has 4 uncorrectable memory errors" in restart["reason"]
    assert [event["findings"] for event in world.events("algo-3", "health")] == [[]]
    assert world.events("algo-2", "step") == []


def test_without_a_spare_the_attempt_ends_as_hardware_and_names_the_host(tmp_path: Path) -> None:
    world = gated_world(tmp_path, 2, 0)
    assert world.wait() == [75, 75]
    failure = world.failure("algo-2")
    assert (failure["class"], failure["host"]) == ("hardware", "algo-2")
    assert json.dumps(failure["reason"]) == '"health check before training: GPU 1 has 4 uncorrectable memory errors"'
