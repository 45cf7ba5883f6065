"""Ranks that are forked from a process with PyTorch: their variables, their outcome, and what happens without that process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_world import REPOSITORY
from slipway_driver.attempt import new_state_folder
from slipway_driver.fork_server import rank_variables
from slipway_driver.launchers import Forked, Launcher

pytestmark = pytest.mark.jobs

#: A program in place of the trainer: prints what it was given, and ends as its first argument says.
PROGRAM = """
import os, signal, sys
def main(words):
    rank, ranks, colour = (os.environ[name] for name in ("RANK", "WORLD_SIZE", "COLOUR"))
    print("rank", rank, "of", ranks, "pid", os.getpid(), "session", os.getsid(0), colour, flush=True)
    if words[0] == "kill" and os.environ["LOCAL_RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    if words[0] == "raise":
        raise RuntimeError("a broken program")
    return int(words[0]) if words[0].isdigit() else 0
"""


def attempt(folder: Path, *words: str, processes: int = 2, **environ: str) -> Any:
    """What the launcher uses of an attempt."""
    package = folder / "packages/program"
    if not package.exists():
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "__main__.py").write_text(PROGRAM)
        (package / "preload.py").write_text("import program.__main__\n")
    path = f"{folder}/packages:{REPOSITORY}/containers/driver"
    return SimpleNamespace(
        job=SimpleNamespace(builtin_module="program", processes_per_host=processes),
        cluster=SimpleNamespace(rank=1, training_hosts=("algo-1", "algo-2")),
        environ={"PATH": os.environ["PATH"], "PYTHONPATH": path, "COLOUR": "red", **environ},
        folder=folder,
        forked_command=[sys.executable, "-u", "-m", "program", *words],
        command_of=lambda state: [sys.executable, "-c", "print('torchrun')"],
        compile_cache=None,
    )


def run(launcher: Launcher, wanted: Any) -> tuple[int, str, dict[int, dict[str, Any]]]:
    """Exit code of the launcher, its output, and the records of the ranks."""
    state = new_state_folder()
    process = launcher.start(wanted, state)
    assert process.stdout is not None
    output = process.stdout.read().decode()
    records = {path.stem: json.loads(path.read_text()) for path in state.glob("rank-*.json")}
    return process.wait(), output, {record["rank"]: record for record in records.values()}


@pytest.fixture
def launcher(tmp_path: Path) -> Any:
    found = Launcher(attempt(tmp_path))
    yield found
    found.close()


def test_start_after_start_comes_from_one_process(tmp_path: Path, launcher: Launcher) -> None:
    pids = set()
    for colour in ("red", "blue"):
        code, output, records = run(launcher, attempt(tmp_path, "0", COLOUR=colour))
        assert (code, sorted(records), {record["code"] for record in records.values()}) == (0, [2, 3], {0})
        for rank in (2, 3):
            line = next(line for line in output.splitlines() if f"rank {rank} of 4" in line)
            words = line.split()
            assert words[-1] == colour and words[words.index("pid") + 1] == words[words.index("session") + 1]
            pids.add(words[words.index("pid") + 1])
    assert len(pids) == 4


@pytest.mark.parametrize(("word", "code", "of_rank"), [("3", 1, 3), ("raise", 1, 1)])
def test_a_rank_that_fails_has_its_exit_code_and_its_error(tmp_path: Path, launcher: Launcher, word: str, code: int, of_rank: int) -> None:
    ended, _output, records = run(launcher, attempt(tmp_path, word, processes=1))
    assert (ended, records[1]["code"]) == (code, of_rank)
    assert ("a broken program" in records[1]["summary"]) == (word == "raise")


def test_a_killed_rank_ends_the_others(tmp_path: Path, launcher: Launcher) -> None:
    code, _output, records = run(launcher, attempt(tmp_path, "kill"))
    assert (code, records[3]["code"]) == (1, -signal.SIGKILL)


def test_a_program_that_cannot_be_imported_fails_in_its_ranks(tmp_path: Path) -> None:
    wanted = attempt(tmp_path, "0", processes=1)
    (tmp_path / "packages/program/__main__.py").write_text("import missing_module\n")
    launcher = Launcher(wanted)
    code, _output, records = run(launcher, wanted)
    launcher.close()
    assert code == 1 and "missing_module" in records[1]["summary"]


def test_without_the_process_the_ranks_are_started_with_torchrun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = attempt(tmp_path, "0")
    # As after an import that has used a GPU, which a fork could not use again.
    (tmp_path / "packages/program/preload.py").write_text("import os\nos._exit(0)\n")
    launcher = Launcher(wanted)
    code, output, _records = run(launcher, wanted)
    launcher.close()
    assert (code, output) == (0, "torchrun\n")
    assert "the ranks are started with torchrun" in capsys.readouterr().out


def test_the_end_of_the_process_ends_its_ranks(tmp_path: Path, launcher: Launcher) -> None:
    (tmp_path / "packages/program/__main__.py").write_text(
        "import time\ndef main(words):\n    print('up', flush=True)\n    time.sleep(600)\n"
    )
    fresh = Launcher(attempt(tmp_path, "0", processes=1))
    process = fresh.start(attempt(tmp_path, "0", processes=1), new_state_folder())
    assert isinstance(process, Forked) and process.stdout is not None
    assert b"up" in process.stdout.readline()
    assert process.poll() is None
    fresh.close()
    process.stdout.read()
    assert process.wait() != 0


def test_variables_are_those_of_torchrun() -> None:
    order = {"processes": 2, "host": 1, "hosts": 3, "environ": {"A": "b", "OMP_NUM_THREADS": "4"}}
    assert rank_variables(order, 1) == {
        "A": "b", "OMP_NUM_THREADS": "4", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "RANK": "3", "LOCAL_RANK": "1", "GROUP_RANK": "1",
        "ROLE_RANK": "3", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "3", "ROLE_WORLD_SIZE": "6",
    }  # fmt: skip


@pytest.mark.torch
def test_the_imports_of_the_trainer_use_no_gpu_and_start_no_thread() -> None:
    pytest.importorskip("torch")
    program = (
        "import torch\n"
        "def fail(*_): raise SystemExit('a GPU is used')\n"
        "torch._C._cuda_getDeviceCount = torch._C._cuda_init = fail\n"
        "import slipway_trainer.preload, os\n"
        "print(len(os.listdir('/proc/self/task')), torch.cuda.is_initialized())\n"
    )
    path = f"{REPOSITORY}/containers/driver:{REPOSITORY}/containers/trainer"
    environ = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["1", "False"], done.stderr
