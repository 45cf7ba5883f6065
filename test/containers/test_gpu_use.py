"""How busy the GPUs of each host are: what nvidia-smi says, and one line of the log for all hosts of a job."""

import json
import os
import sys
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json
from slipway_driver.gpus import MeanUse, every, parse_use

pytestmark = pytest.mark.jobs

#: Its GPUs are as busy as the host's file says; every other question is answered as on a healthy host.
NVIDIA_SMI = """#!/bin/sh
case "$*" in
*--list-gpus*) printf 'GPU 0: x\\nGPU 1: x\\n';;
*index,ecc*) printf '0, 0\\n1, 0\\n';;
*utilization.gpu*) cat "$SAGEMAKER_BASE_DIR/busy";;
esac
"""
#: Trains until the test has seen enough.
WAITS = """
import os, pathlib, time
while not pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"], "enough").exists():
    time.sleep(0.05)
"""


@pytest.mark.parametrize(
    ("said", "use"),
    [
        ("97, 71234, 81559\n93, 71000, 81559\n", {"utilizationPercent": 95.0, "memoryGiB": 69.6, "totalGiB": 79.6}),
        ("[N/A], 1024, 40960\n", {"utilizationPercent": None, "memoryGiB": 1.0, "totalGiB": 40.0}),
        ("50, 1024, 40960\n[GPU is lost], [N/A], [N/A]\n", {"utilizationPercent": 50.0, "memoryGiB": 1.0, "totalGiB": 40.0}),
        ("Unable to determine the device handle for GPU 0000:10:1C.0: Unknown Error\n", None),
        ("", None),
    ],
)
def test_what_nvidia_smi_says(said: str, use: object) -> None:
    assert parse_use(said) == use


@pytest.mark.parametrize(("hosts", "seconds"), [(1, 60.0), (30, 60.0), (128, 256.0)])
def test_many_hosts_are_looked_at_less_often(hosts: int, seconds: float) -> None:
    assert every({}, hosts) == seconds
    assert every({"SLIPWAY_GPU_SECONDS": "5"}, hosts) == 5.0


def test_the_mean_counts_each_look_at_each_host_and_no_host_that_does_not_tell() -> None:
    mean = MeanUse()
    assert mean.facts() == {}
    mean.add({"algo-1": {"utilizationPercent": None}})
    assert mean.facts() == {}
    mean.add({"algo-1": {"utilizationPercent": 90.0}, "algo-2": {"utilizationPercent": 30.0}})
    mean.add({"algo-1": {"utilizationPercent": 0.0}, "algo-2": {"utilizationPercent": None}})
    assert mean.facts() == {"gpuUtilizationPercent": 40.0}


def run(folder: Path, busy: "list[str]", path: "list[str]", job: "dict | None" = None, environ: "dict | None" = None) -> FakeWorld:
    """A job of a host for each text of `busy`, up to a line for all of them; without an nvidia-smi it just ends."""
    world = FakeWorld(folder / "job", len(busy), job or job_json(), {"train.py": WAITS})
    for host, text in zip(world.hosts, busy, strict=True):
        (world.base(host) / "busy").write_text(text)
    search = ":".join([*path, str(Path(sys.executable).parent), os.environ["PATH"]])
    world.start({"SLIPWAY_GPU_SECONDS": "0.2", "PATH": search, **(environ or {})})
    if path:
        world.wait_for("algo-1", f'"{world.hosts[-1]}":{{"utilizationPercent"')
    for host in world.hosts:
        (world.base(host) / "enough").touch()
    assert world.wait() == [0] * len(busy)
    return world


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A folder with an nvidia-smi that says what a test wants."""
    tool = tmp_path / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(NVIDIA_SMI)
    tool.chmod(0o755)
    return str(tool.parent)


def test_the_first_host_prints_what_all_of_them_see(tmp_path: Path, tools: str) -> None:
    world = run(tmp_path, ["90, 2048, 4096\n80, 1024, 4096\n", "10, 1024, 4096\n"], [tools])
    seen = {host: use for event in world.events("algo-1", "gpus") for host, use in event["hosts"].items()}
    assert seen == {
        "algo-1": {"utilizationPercent": 85.0, "memoryGiB": 2.0, "totalGiB": 4.0},
        "algo-2": {"utilizationPercent": 10.0, "memoryGiB": 1.0, "totalGiB": 4.0},
    }
    assert world.events("algo-2", "gpus") == []


def test_the_last_heartbeat_of_a_job_has_the_mean(tmp_path: Path, tools: str) -> None:
    s3 = FakeS3()
    try:
        job = job_json(heartbeatUri="s3://checkpoints/runs/default/tiny/heartbeat.json")
        run(tmp_path, ["90, 2048, 4096\n80, 1024, 4096\n"], [tools], job, s3.environ)
        assert json.loads(s3.objects["/checkpoints/runs/default/tiny/heartbeat.json"])["gpuUtilizationPercent"] == 85.0
    finally:
        s3.close()


@pytest.mark.skipif(any(Path(folder, "nvidia-smi").exists() for folder in os.environ["PATH"].split(":")), reason="this machine has GPUs")
def test_a_host_without_gpus_says_nothing(tmp_path: Path) -> None:
    world = run(tmp_path, [""], [])
    assert world.events("algo-1", "gpus") == []
