"""The health gate: what NVIDIA's tools answer, who is refused, and whole jobs in which a bad host is replaced before its first step."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Optional, Sequence

import pytest

from fake_world import FakeWorld, direct_checkpoints, job_json, with_gpus, with_quick_torchrun
from slipway_driver.gpus import Answer, Gpu, answer_of
from slipway_driver.health_findings import QUICK, Finding, Place, answer_findings, count_findings, dcgm_findings, tool_findings, tuning
from slipway_driver.health_gate import (
    DCGM,
    EarlyAnswers,
    HealthGate,
    Tools,
    gate_of,
    quick_answers,
)
from slipway_driver.health_measure import Measured

pytestmark = pytest.mark.jobs

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


def reasons(found: "list[Finding]") -> "list[tuple[str, bool]]":
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
        ("clocks", "0, Not Active, Not Active\n1, Active, Not Active\n", [("GPU 1 runs at lower clocks because of heat", False)]),
        ("links", LINKS, [("GPU 1 has 1 of 2 NVLinks inactive", True)]),
        ("links", "GPU 0: NVIDIA L4 (UUID: GPU-0)\n\t Link 0: <inactive>\n", []),
        (
            "kernel",
            "NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus.\n" * 2,
            [("the kernel has logged Xid 79 of PCI:0000:53:00", True)],
        ),
        # leptonai/gpud#1174
        (
            "kernel",
            "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406)\n"
            "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)\n"
            "NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error\n",
            [("the kernel has logged Xid 149 of PCI:0019:01:00", True)],
        ),
        ("kernel", "NVRM: Xid (PCI:0000:53:00): 31, pid=1, name=python, MMU Fault\n", []),
        ("dcgm", DIAGNOSIS, [("DCGM's test PCIe fails", True)]),
        ("dcgm", "Error: unable to establish a connection to the specified host: localhost\n", []),
    ],
)
def test_what_a_tool_says_is_found_and_nothing_else(read: str, text: str, found: "list[tuple[str, bool]]") -> None:
    assert reasons(dcgm_findings(text) if read == "dcgm" else list(answer_findings({read: text}))) == found


@pytest.mark.parametrize("read", ["memory", "remap", "clocks", "links", "kernel", "dcgm"])
@pytest.mark.parametrize(
    "text", [None, "", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "a, b, c, d, e\n", "{"]
)
def test_an_answer_that_is_not_understood_says_nothing(read: str, text: Optional[str]) -> None:
    assert [*answer_findings({read: text}), *dcgm_findings(text)] == []


@pytest.mark.parametrize(
    ("place", "gpus", "found"),
    [
        (P5, EIGHT, []),
        (P5, EIGHT.rsplit("\n", 1)[0], [("7 of 8 GPUs respond", True)]),
        (P5, "", [("0 of 8 GPUs respond", True)]),
        (P5, Answer(EIGHT.rsplit("\n", 1)[0], 15), [("7 of 8 GPUs respond", True)]),
        (P5, Answer("", 14), [("0 of 8 GPUs respond", True)]),
        # Without a permission, the library of NVIDIA's driver, or a query that it knows, nothing was counted.
        *((P5, Answer("Failed to initialize NVML\n", code), []) for code in (2, 4, 12, 18, 255)),
        (P5, None, []),
        (P5._replace(efa_devices=31), EIGHT, [("31 of 32 EFA devices are present", True)]),
        (P5._replace(efa_devices=31, efa_needed=False), EIGHT, [("31 of 32 EFA devices are present", False)]),
        (P5._replace(efa_devices=0), EIGHT, []),
        (P5._replace(instance_type="ml.unheard.of"), "", []),
    ],
)
def test_devices_are_counted_against_the_type(place: Place, gpus: "Answer | str | None", found: "list[tuple[str, bool]]") -> None:
    answer = gpus if isinstance(gpus, Answer) else Answer(gpus, None if gpus is None else 0)
    assert reasons(count_findings(place, answer)) == found


LIST = "nvidia-smi --list-gpus"


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        ("gpus", Answer(late=True), [(LIST + ": no answer in 30 s in 2 tries", True)]),
        ("links", Answer(late=True), [("nvidia-smi nvlink: no answer in 30 s", False)]),
        (
            "memory",
            Answer("Unable to determine the device handle for GPU0000:53:00.0: GPU is lost.\n", 15),
            [("nvidia-smi --query-gpu: exit code 15: Unable to determine the device handle for GPU0000:53:00.0: GPU is lost.", True)],
        ),
        ("gpus", Answer("", 9), [(LIST + ": exit code 9: no output", True)]),
        ("remap", Answer("x\n", 255), [("nvidia-smi --query-remapped-rows: exit code 255: x", False)]),
        # An older nvidia-smi does not know the query; a container may lack the tool or a permission.
        ("clocks", Answer("Field is not a valid field to query.\n", 2), []),
        ("remap", Answer("Insufficient Permissions\n", 4), []),
        ("memory", Answer("0, 0\nWARNING: infoROM is corrupted at gpu 0000:53:00.0\n", 14), []),
        ("gpus", Answer(), []),
        ("kernel", Answer(late=True), []),
        ("kernel", Answer("dmesg: read kernel buffer failed\n", 1), []),
    ],
)
def test_nvidia_smi_that_hangs_or_fails_is_a_finding_on_a_type_with_gpus(
    name: str, answer: Answer, found: "list[tuple[str, bool]]"
) -> None:
    said = {other: Answer("", 0) for other in QUICK} | {name: answer}
    assert reasons(tool_findings(P5, said)) == found
    assert tool_findings(P5._replace(instance_type="ml.m5.large"), said) == []


class Asked:
    """Answers by the name of the question; counts what was asked."""

    def __init__(self, **said: "str | Answer | list[Answer]") -> None:
        self.said, self.asked = said, []

    def __call__(self, command: Sequence[str], seconds: float) -> Answer:
        name = next((name for name, known in QUICK.items() if tuple(known) == tuple(command)), "dcgm" if tuple(command) == DCGM else "")
        self.asked.append(name)
        found = self.said.get(name, Answer())
        if isinstance(found, list):
            return found.pop(0)
        return Answer(found, 0) if isinstance(found, str) else found


def test_a_tool_that_cannot_be_killed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = []

    class Stuck(subprocess.Popen):  # type: ignore[type-arg]
        def communicate(self, input: object = None, timeout: "float | None" = None) -> "tuple[bytes, bytes]":
            raise subprocess.TimeoutExpired(self.args, timeout or 0)

        def kill(self) -> None:
            killed.append(self)

    monkeypatch.setattr(subprocess, "Popen", Stuck)
    assert answer_of(["sleep", "600"], 30.0) == Answer(late=True)
    monkeypatch.undo()
    [process] = killed
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def test_a_command_that_is_missing_or_fails_gives_its_answer() -> None:
    assert answer_of(["no-such-tool"], 30.0) == Answer()
    assert answer_of(["sh", "-c", "echo said; exit 9"], 30.0) == Answer("said\n", 9)


def test_nvidia_smi_is_asked_twice_and_not_again_once_it_hangs() -> None:
    hung, slow = Asked(gpus=Answer(late=True)), Asked(gpus=[Answer(late=True), Answer(EIGHT, 0)])
    assert quick_answers(hung)["gpus"].late and hung.asked == ["gpus", "gpus", "kernel"]
    assert quick_answers(slow)["gpus"].text == EIGHT and sorted({*slow.asked}) == sorted(QUICK)
    end = HealthGate("quick", P5, Tools(hung, lambda _stopped: Measured({}, [], []))).check()
    assert end is not None and end.reason == "health check before training: nvidia-smi --list-gpus: no answer in 30 s in 2 tries"


def test_answers_that_were_read_while_packages_were_installed_are_not_read_again() -> None:
    asked, lost = Asked(gpus=EIGHT), Asked(gpus=EIGHT.splitlines()[0])
    nobody = Tools(lambda *_: pytest.fail("asked again"), lambda _stopped: Measured({}, [], []))  # type: ignore[arg-type, return-value]
    assert HealthGate("quick", P5, nobody, early=EarlyAnswers(asked)).check() is None
    assert sorted(asked.asked) == sorted(QUICK)
    end = HealthGate("quick", P5, nobody, early=EarlyAnswers(lost)).check()
    assert end is not None and "1 of 8 GPUs respond" in end.reason


@pytest.mark.parametrize("idle", [True, False])
def test_a_spare_host_is_asked_when_it_takes_a_place_and_not_at_the_start(idle: bool) -> None:
    cluster = SimpleNamespace(current_host="algo-3", instance_type="ml.p5.48xlarge", idle=idle, training_hosts=("algo-1", "algo-2"))
    job, early = SimpleNamespace(efa="preferred", raw={}, health_check="quick"), EarlyAnswers(Asked(gpus=EIGHT))
    attempt = SimpleNamespace(cluster=cluster, job=job, devices=32, hardware={}, environ={}, folder=Path("/"), early=early)
    assert gate_of(attempt, False)._early is (None if idle else early)  # type: ignore[arg-type]


def test_off_asks_nothing_quick_asks_once_and_full_measures_a_host_that_is_not_refused_yet() -> None:
    off, quick, full, bad = (Asked(gpus=EIGHT) for _ in range(4))
    bad.said["memory"] = "3, 1\n"
    measured = []

    def measure(_stopped: threading.Event) -> Measured:
        measured.append(1)
        return Measured({"tflops": [700.0, 100.0]}, [], [])

    assert HealthGate("off", P5, Tools(off, measure)).check() is None and off.asked == []
    gate = HealthGate("quick", P5, Tools(quick, measure))
    assert gate.check() is None and gate.check() is None
    assert sorted(quick.asked) == sorted(QUICK) and measured == []
    end = HealthGate("full", P5, Tools(full, measure)).check()
    assert end is not None and (end.code, end.kind) == (75, "hardware")
    assert end.reason == "health check before training: GPU 1: 100 TFLOP/s in matrix multiplication, another GPU: 700"
    assert full.asked[-1] == "dcgm"
    end = HealthGate("full", P5, Tools(bad, measure)).check()
    assert end is not None and "GPU 3 has 1 uncorrectable memory errors" in end.reason and len(measured) == 1


@pytest.mark.parametrize(
    ("mode", "facts", "clears"),
    [("full", {"tflops": [700.0, 690.0]}, True), ("full", {}, False), ("quick", {}, False), ("full", {"tflops": [700.0, 100.0]}, False)],
    ids=["passed", "not-measured", "quick", "failed"],
)
def test_only_a_full_check_with_all_measurements_clears_a_suspect_gpu(mode: str, facts: "dict[str, list[float]]", clears: bool) -> None:
    gate = HealthGate(
        mode, P5._replace(suspect=[Gpu(1, "GPU-1", "bus")]), Tools(Asked(gpus=EIGHT), lambda _stopped: Measured(facts, [], []))
    )
    gate.check()
    assert gate.cleared == (["GPU-1"] if clears else [])


@pytest.mark.parametrize("refuses", [True, False])
def test_a_failed_measurement_is_told_with_its_last_lines(capsys: pytest.CaptureFixture[str], refuses: bool) -> None:
    failed = Measured({}, [Finding("measurement", "GPU 5 failed", refuses)], ["the last line"])
    end = HealthGate("full", P5, Tools(Asked(gpus=EIGHT), lambda _stopped: failed)).check()
    told = capsys.readouterr().out
    assert "health: measurement: the last line" in told and "health: GPU 5 failed" in told
    assert '"reason":"GPU 5 failed"' in told
    expected = ("hardware", "health check before training: GPU 5 failed", ["the last line"])
    assert (end and (end.kind, end.reason, end.lines)) == (expected if refuses else None)


@pytest.mark.parametrize("tuned", [[], ["NCCL_ALGO"]])
def test_a_slow_all_reduce_refuses_unless_the_run_tunes_nccl(tuned: "list[str]") -> None:
    facts = {"device": "cuda", "tflops": [700.0] * 8, "busBandwidthGBps": 0.5}
    assert tuple(tuning({name: "Ring" for name in tuned})) == tuple(tuned)
    end = HealthGate("full", P5, Tools(Asked(gpus=EIGHT), lambda _stopped: Measured(facts, [], []), tuned)).check()
    assert (end is None) == bool(tuned)
    assert end is None or end.reason.endswith("all-reduce between the GPUs: 0.5 GB/s bus bandwidth; its type reaches 360 over NVLink")


#: The other host waits for algo-2 as ranks wait for each other at their rendezvous.
SCRIPT = """
import json, os, time
if os.environ["SM_CURRENT_HOST"] != "algo-2" and "algo-2" in json.loads(os.environ["SM_HOSTS"]):
    time.sleep(600)
for step in range(1, 4):
    print("slipway " + json.dumps({"event": "step", "step": step}), flush=True)
print("trained as rank", json.loads(os.environ["SM_HOSTS"]).index(os.environ["SM_CURRENT_HOST"]), flush=True)
"""


#: PyTorch as the measuring ranks see it: on algo-2 the second GPU is broken and the first one waits; other hosts have none.
TORCH = """
import os, time
if os.environ["SM_CURRENT_HOST"] != "algo-2":
    raise ImportError("this image has no PyTorch")
class cuda:
    def is_available():
        if os.environ["RANK"] == "1":
            raise RuntimeError("CUDA error: system not yet initialized")
        time.sleep(600)
"""


#: PyTorch as the probe sees it: two ranks that meet at the first host and exchange a byte. Real ones take 16 s of CPU time.
MEETING = {
    "torch/__init__.py": """
float32 = float64 = None
class cuda:
    is_available = staticmethod(lambda: False)
def device(kind):
    return kind
class zeros(list):
    def __init__(self, size, **_more):
        self.size = size
    def numel(self):
        return self.size
class tensor:
    def __init__(self, values, **_more):
        self.value = values[0]
    def __float__(self):
        return self.value
""",
    "torch/distributed/__init__.py": """
import os, socket, struct, time
def init_process_group(_backend):
    global link
    place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if get_rank() == 0:
        link = socket.create_server(place).accept()[0]
        return
    while True:
        try:
            link = socket.create_connection(place)
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
def all_reduce(*_tensor):
    link.sendall(b".")
    link.recv(1)
barrier = all_reduce
def broadcast(tensor, _source):
    if get_rank() == 0:
        link.sendall(struct.pack("d", tensor.value))
    else:
        (tensor.value,) = struct.unpack("d", link.recv(8, socket.MSG_WAITALL))
get_rank = lambda: int(os.environ["RANK"])
get_world_size = lambda: int(os.environ["WORLD_SIZE"])
destroy_process_group = lambda: None
""",
}


def gated_world(tmp_path: Path, hosts: int, environ: "dict[str, str] | None" = None, **changes: object) -> FakeWorld:
    """The GPUs of algo-2 have an uncorrectable error when the job begins, or with `healthCheck: full` fail the measurement."""
    (tmp_path / "checkpoints").mkdir()
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = job_json(**{"restartsInPlace": 3, "checkpoints": checkpoints, "healthCheck": "quick", **changes})
    full = job["healthCheck"] == "full"
    code = {"torch/__init__.py": TORCH, "torch/distributed/__init__.py": ""} if full else MEETING
    world = FakeWorld(tmp_path / "world", hosts, job, {"train.py": SCRIPT, **code}, name=f"gate-{tmp_path.name}")
    if not full:
        (world.base("algo-2") / "gpus").write_text("0, 0\n1, 4\n")
    world.start({**with_gpus(tmp_path), **with_quick_torchrun(tmp_path), **(environ or {})})
    return world


def test_a_spare_host_takes_the_place_of_a_bad_one_before_the_first_step(tmp_path: Path) -> None:
    world = gated_world(tmp_path, 3, spareInstances=1)
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    assert "trained as rank 1" in world.log("algo-3") and "trained as" not in world.log("algo-2")
    restart = world.events("algo-1", "restart")[0]
    assert (restart["host"], restart["replaced"]) == ("algo-2", {"algo-2": "algo-3"})
    assert "GPU 1 has 4 uncorrectable memory errors" in restart["reason"]
    assert [event["findings"] for event in world.events("algo-3", "health")] == [[]]
    assert world.events("algo-2", "step") == []


def test_without_a_spare_the_attempt_ends_as_hardware_and_names_the_host(tmp_path: Path) -> None:
    world = gated_world(tmp_path, 2)
    assert world.wait() == [75, 75]
    failure = world.failure("algo-2")
    assert (failure["class"], failure["host"]) == ("hardware", "algo-2")
    assert json.dumps(failure["reason"]) == '"health check before training: GPU 1 has 4 uncorrectable memory errors"'


def test_a_gpu_that_fails_the_measurement_is_named_and_an_image_without_pytorch_refuses_no_host(tmp_path: Path) -> None:
    world = gated_world(tmp_path, 3, spareInstances=1, healthCheck="full")
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    restart = world.events("algo-1", "restart")[0]
    assert (restart["host"], restart["replaced"]) == ("algo-2", {"algo-2": "algo-3"})
    failed = "GPU 1 failed in matrix multiplication with exit code 1: RuntimeError: CUDA error: system not yet initialized"
    assert restart["reason"] == "health check before training: " + failed
    assert "slipway-driver: health: measurement: RuntimeError: CUDA error: system not yet initialized" in world.log("algo-2")
    for host in ("algo-1", "algo-3"):
        [event] = world.events(host, "health")
        [finding] = event["findings"]
        assert not finding["refuses"] and finding["reason"].endswith("exit code 3: ImportError: this image has no PyTorch")
        assert "slipway-driver: health: the GPUs were not measured" in world.log(host)


@pytest.mark.torch
def test_the_probe_runs_once_and_only_on_hosts_that_have_passed_the_check(tmp_path: Path) -> None:
    world = gated_world(tmp_path, 3, {"SLIPWAY_PROBE_SECONDS": "0.1"}, spareInstances=1, launcher="torchrun")
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    log = world.log("algo-1")
    assert len(world.events("algo-1", "probe")) == 1 and log.index('"event":"restart"') < log.index('"event":"probe"')
    assert "probe: all_reduce for" in world.log("algo-3") and "probe: all_reduce for" not in world.log("algo-2")
    assert "probe: ended, because the ranks of another host do not start: " in log
    written = json.loads((world.base("algo-1") / "output/data/efa.json").read_text())
    assert written["busBandwidthGBps"] == world.events("algo-1", "probe")[0]["busBandwidthGBps"]
