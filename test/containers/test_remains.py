"""A restart in place waits until killed ranks and their GPU memory are gone; ranks leave no core files."""

import resource
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from fake_world import REPOSITORY
from slipway_driver.errors import Failure, classify
from slipway_driver.health import Health, parse_memory
from slipway_driver.inventory import cuda_of_torch, driver_line
from slipway_driver.process_environment import efa_devices
from slipway_driver.rank_session import is_running


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


def wait(readings: list, pids_until: float = 0.0) -> tuple[str, float]:
    """(complaint, seconds waited). `readings`: the memory before, then at each observation; the last one stays."""
    clock = Clock()
    left = list(readings)
    read = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
    fakes = {"read_memory": read, "is_running": lambda _pid: clock.now < pids_until, "time": clock}
    with mock.patch.multiple("slipway_driver.health", **fakes):
        return Health().await_gone([11, 12]), clock.now


def test_it_waits_for_processes_and_then_for_their_memory() -> None:
    assert wait([{0: 500}, {0: 500}]) == ("", 0.0)
    assert wait([{0: 500}, {0: 70_000}, {0: 30_000}, {0: 600}], pids_until=5.0) == ("", 5.5)


def test_a_host_whose_memory_stays_taken_is_broken() -> None:
    complaint, waited = wait([{0: 500, 1: 500}, {0: 500, 1: 41_000}])
    assert complaint == "GPU 1 holds 41000 MiB 60 s after the ranks ended" and 60.0 <= waited < 61.0
    complaint, _ = wait([None], pids_until=1e9)
    assert complaint == "processes 11, 12 have not ended within 60 s of SIGKILL"
    complaint, _ = wait([{0: 500}, None])
    assert complaint == "nvidia-smi does not respond 60 s after the ranks ended"
    with mock.patch("slipway_driver.health.read_gpus", lambda: None):
        end = Health().judged(Failure(70, "hang", None, "no step", []), complaint)
    assert (end.code, end.kind) == (75, "hardware")


def test_a_host_without_gpus_waits_for_processes_only() -> None:
    assert wait([None], pids_until=2.0) == ("", 2.0)


def test_a_zombie_holds_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    import time

    deadline = time.monotonic() + 10
    while is_running(child.pid) and time.monotonic() < deadline:
        pass
    assert not is_running(child.pid), "it has ended and is not reaped"
    child.wait()
    assert is_running(1)


def test_memory_is_read_from_nvidia_smi() -> None:
    assert parse_memory("0, 412\n1, 81000\n2, [N/A]\nUnable to determine\n") == {0: 412, 1: 81000}


#: What a rank may dump, and whether a process that it starts leaves a dump when it aborts.
DUMP = """
import os, pathlib, resource
child = os.fork()
if child == 0:
    os.abort()
dumped = os.WCOREDUMP(os.waitpid(child, 0)[1])
print(*resource.getrlimit(resource.RLIMIT_CORE), int(pathlib.Path("/proc/self/coredump_filter").read_text(), 16), dumped)
"""


@pytest.mark.parametrize("hard", [None, 0])
def test_a_rank_leaves_no_core_dump_also_where_the_host_pipes_it(tmp_path: Path, hard: "int | None") -> None:
    (tmp_path / "script.py").write_text(DUMP)
    command = [sys.executable, "-m", "slipway_driver.rank", str(tmp_path), sys.executable, str(tmp_path / "script.py")]
    environ = {"PYTHONPATH": f"{REPOSITORY}/containers/driver", "PATH": "/usr/bin:/bin"}
    limit = resource.getrlimit(resource.RLIMIT_CORE)[1] if hard is None else hard

    def with_cores() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))

    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=30, preexec_fn=with_cores)
    assert done.returncode == 0, done.stderr
    soft, found, memory, dumped = done.stdout.split()
    assert int(found) == limit
    # Linux skips a piped dump only at a limit of 1; elsewhere, the dump contains no memory.
    assert (soft, memory != "0") == ("1", True) if limit != 0 else (soft, memory) == ("0", "0")
    assert dumped == "False" or limit == 0


def test_only_devices_of_the_efa_driver_count(tmp_path: Path) -> None:
    devices, classes = tmp_path / "dev", tmp_path / "class"
    devices.mkdir()
    for number in range(10):
        (devices / f"uverbs{number}").touch()
    (devices / "rdma_cm").touch()
    assert efa_devices(devices, classes) == 10, "a container that does not see /sys"
    for number in range(10):
        driver = tmp_path / "drivers" / ("efa" if number < 8 else "mlx5_core")
        driver.mkdir(parents=True, exist_ok=True)
        (classes / f"uverbs{number}/device").mkdir(parents=True)
        (classes / f"uverbs{number}/device/driver").symlink_to(driver)
    assert efa_devices(devices, classes) == 8
    assert efa_devices(tmp_path / "none", classes) == 0


def test_the_driver_is_compared_with_the_image() -> None:
    fits = driver_line({"driver": "580.95.05", "cuda": "13.0"}, compat=False)
    assert fits == "NVIDIA driver 580.95.05, PyTorch built for CUDA 13.0: compatible (CUDA 13 needs 580 or later)"
    assert "compatible" in driver_line({"driver": "535.183.01", "cuda": "12.8"}, compat=False)
    old = driver_line({"driver": "550.163", "cuda": "13.0"}, compat=False)
    assert "older than the required 580; CUDA cannot be initialized" in old
    assert "cuda-compat, which may support it" in driver_line({"driver": "550.163", "cuda": "13.0"}, compat=True)
    assert driver_line({"driver": "580.1"}, False) == driver_line({"cuda": "13.0"}, False) == ""


def test_the_cuda_version_is_read_without_an_import(tmp_path: Path) -> None:
    code = "from slipway_driver.inventory import cuda_of_torch; import sys; print(cuda_of_torch()); assert 'torch' not in sys.modules"
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("")
    (tmp_path / "torch/version.py").write_text("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n")
    environ = {"PYTHONPATH": f"{tmp_path}:{REPOSITORY}/containers/driver"}
    assert subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True).stdout == "13.0\n"


def test_it_is_what_pytorch_says_itself() -> None:
    torch = pytest.importorskip("torch")
    assert cuda_of_torch() == torch.version.cuda


#: NCCL 2.27 and aws-ofi-nccl 1.17 when a host of the job has gone.
SILENT = """Traceback (most recent call last):
  File "train.py", line 3, in step
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
NET/OFI Request 0x7f completed with error. RC: 113. Error: 4124 (Unresponsive remote). Completed length: 0"""  # noqa: E501


def test_a_remote_that_does_not_answer_is_a_lost_peer() -> None:
    def end(text: str) -> str:
        lines = text.splitlines()
        record = {"rank": 3, "localRank": 3, "code": 1, "errorAt": 1.0, "endedAt": 1.0, "summary": lines[2], "tail": lines}
        return classify(record, False).kind

    assert end(SILENT) == "peer-lost"
    full = SILENT.replace(SILENT.splitlines()[-1], "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)")
    assert end(full) == "user-code", "a full /dev/shm is nobody else's fault"
