"""GPUs that are remembered: what an attempt reports of them, and how the health check treats those of earlier jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, direct_checkpoints, job_json, with_gpus
from slipway_driver.gpus import REMEMBERED, Answer, Gpu, blamed, evidence, is_evidence, parse_gpus
from slipway_driver.health_findings import Place
from slipway_driver.health_gate import HealthGate, Tools
from slipway_driver.health_measure import Measured
from slipway_driver.restart_policy import Report

pytestmark = pytest.mark.jobs


def uuid(index: int, host: int = 1) -> str:
    return "GPU-00000000-0000-0000-0000-%012d" % int(f"{index}{host}")


GPUS = [Gpu(0, uuid(0), "00000000:53:00.0"), Gpu(3, uuid(3), "00000000:64:00.0")]


def test_only_lines_with_a_uuid_are_gpus() -> None:
    text = f"0, {uuid(0)}, 00000000:53:00.0\n1, [Unknown Error], 00000000:64:00.0\n2, MIG-3d7408b2, x\nNo devices\n"
    assert parse_gpus(text) == GPUS[:1]


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("GPU 3 has 2 uncorrectable memory errors", [3]),
        ("GPU 0, 3 is lost (RuntimeError: x)", [0, 3]),
        ("GPU 3 is lost (RuntimeError: something about GPU 0", [3]),
        ("NVRM: Xid (PCI:0000:64:00): 79, GPU has fallen off the bus.", [3]),
        ("GPU at 00000000:64:00.0 needs a reset to remap a memory row", [3]),
        ("the kernel has logged Xid 79 of PCI:0000:53:00", [0]),
        ("the kernel has logged Xid 79 of PCI:0000:65:00", []),
        ("7 of 8 GPUs respond", []),
        ("nvidia-smi no longer responds", []),
    ],
)
def test_a_reason_names_gpus_by_number_or_address(reason: str, named: list[int]) -> None:
    assert blamed(reason, GPUS) == [gpu.uuid for gpu in GPUS if gpu.index in named]


def broken(reason: str, host: str = "algo-2", kind: str = "hardware") -> Report:
    return Report(host, 75, kind, reason, 5)


def test_evidence_names_gpus_or_else_the_host() -> None:
    slow = {"host": "algo-2", "what": "the backward pass", "ratio": 1.4}
    reports = [broken("GPU 3 is lost"), broken("nvidia-smi no longer responds"), broken("GPU 0 is lost", "algo-9")]
    found, both = evidence(reports, slow, {"algo-2": GPUS}, {}), [uuid(0), uuid(3)]
    assert [(entry["kind"], entry["gpus"]) for entry in found] == [("gpu", [uuid(3)]), ("host", both), ("host", both)]
    assert found[2]["reason"] == "it needs 1.4 times as long as the other hosts for the backward pass"


def test_a_slow_gpu_is_named_but_counts_like_a_host_and_a_slow_network_names_none() -> None:
    (found,) = evidence([], {"host": "algo-2", "what": "compute on GPU 3", "ratio": 1.4}, {"algo-2": GPUS}, {})
    assert (found["kind"], found["gpus"]) == ("host", [uuid(3)])
    (found,) = evidence([], {"host": "algo-2", "what": "network", "ratio": 2.0}, {"algo-2": GPUS}, {})
    assert (found["kind"], found["gpus"]) == ("host", [uuid(0), uuid(3)])
    (found,) = evidence([], None, {"algo-2": GPUS}, {"algo-2": [uuid(3)], "algo-3": []})
    assert (found["host"], found["kind"], found["gpus"]) == ("algo-2", "passed", [uuid(3)])
    assert evidence([], {"host": "", "what": "all-reduce", "ratio": 2.0}, {"algo-2": GPUS}, {}) == []


def test_what_is_remembered_is_no_new_evidence() -> None:
    assert is_evidence(broken("GPU 3 is lost"))
    assert not is_evidence(broken(f"GPU 3 (GPU-x) {REMEMBERED}")) and not is_evidence(broken("a bad line", kind="user-code"))


def test_a_known_bad_gpu_refuses_its_host_before_anything_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    def never(*_arguments: Any) -> Any:
        raise AssertionError("nothing must run")

    failure = HealthGate("full", Place("algo-2", "ml.p5.48xlarge", 32, False, GPUS[1:]), Tools(never, never)).check()
    assert failure is not None and failure.kind == "hardware" and REMEMBERED in failure.reason
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("slipway {")]
    assert json.loads(line[8:])["findings"][0]["check"] == "remembered"


def test_without_known_gpus_the_check_is_the_same() -> None:
    asked: list[str] = []

    def ask(command: Any, _seconds: float) -> Answer:
        asked.append(command[0])
        return Answer()

    gate = HealthGate("quick", Place("algo-2", "", 0, False), Tools(ask, lambda _stopped: Measured({}, [], [])))
    assert gate.check() is None and asked


SCRIPT = """
import os, time
print('slipway {"event":"step","step":1}', flush=True)
if os.environ["SM_CURRENT_HOST"] == os.environ["BREAKS"]:
    first_log = os.path.join(os.path.dirname(os.environ["SAGEMAKER_BASE_DIR"]), "algo-1/log")
    while " hosts are connected" not in open(first_log, errors="replace").read():
        time.sleep(0.05)
    open(os.environ["SAGEMAKER_BASE_DIR"] + "/gpus", "w").write("0, 0\\n")
    raise RuntimeError("x")
if os.environ["BREAKS"] and "SLIPWAY_RESTART" not in os.environ:
    time.sleep(600)
"""


def played(tmp_path: Path, known: dict[str, list[str]], breaks: str = "") -> tuple[FakeWorld, list[dict[str, Any]]]:
    """A job of two hosts with a spare one, and what its last heartbeat says of GPUs."""
    s3 = FakeS3()
    try:
        job = job_json(
            env={"BREAKS": breaks}, restartsInPlace=5, spareInstances=1, healthCheck="quick", knownGpus=known,
            heartbeatUri="s3://c/heartbeat.json",
            checkpoints=direct_checkpoints(tmp_path / "checkpoints"),
        )  # fmt: skip
        # Without PyTorch the full check measures nothing, which takes half a minute.
        code = {"train.py": SCRIPT, "torch/__init__.py": "raise ImportError('none')"}
        world = FakeWorld(tmp_path / "world", 3, job, code, name=f"gpus-{tmp_path.name}")
        world.start({**s3.environ, **with_gpus(tmp_path)})
        assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
        return world, json.loads(s3.objects["/c/heartbeat.json"])["evidence"]
    finally:
        s3.close()


def test_a_gpu_that_is_lost_is_in_the_heartbeat_with_its_uuid(tmp_path: Path) -> None:
    world, found = played(tmp_path, {}, breaks="algo-2")
    assert found == [{"host": "algo-2", "kind": "gpu", "gpus": [uuid(1, 2)], "reason": "GPU 1 is lost (RuntimeError: x)"}]
    assert world.events("algo-2", "inventory")[0]["gpuIds"][1] == [1, uuid(1, 2), "00000000:64:00.0"]


def test_a_spare_replaces_a_host_with_a_known_bad_gpu_and_nothing_new_is_reported(tmp_path: Path) -> None:
    world, found = played(tmp_path, {"bad": [uuid(0, 2)], "suspect": [uuid(1, 1)]})
    assert found == []
    (restart,) = (event for event in world.events("algo-1", "restart") if event["state"] == "begin")
    assert restart["replaced"] == {"algo-2": "algo-3"} and REMEMBERED in restart["reason"]
    (health,) = world.events("algo-1", "health")
    assert health["mode"] == "full" and "earlier jobs have reported GPU 1" in world.log("algo-1")
