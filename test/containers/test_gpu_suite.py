"""npm run test:gpu as far as a machine without a GPU can go: every case is skipped by name, and what does not need CUDA is right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fake_world import REPOSITORY

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SUITE = str(REPOSITORY / "bench/gpu")
PATHS = (SUITE, str(REPOSITORY / "bench/trainer"))


@pytest.fixture(autouse=True)
def suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules, which have short names, are there for one test."""
    before = set(sys.modules)
    for path in PATHS:
        monkeypatch.syspath_prepend(path)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(PATHS):
            del sys.modules[name]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SUITE, *words], capture_output=True, text=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})


def test_without_a_gpu_every_case_is_skipped_by_name_and_the_table_says_so(tmp_path: Path) -> None:
    done = run("--write", str(tmp_path / "table.md"))
    assert done.returncode == 0, done.stderr
    rows = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| ") and "must" not in line]
    assert len(rows) == 23
    assert all(row.endswith("| skipped | no GPU |") for row in rows), rows


def test_fails_for_a_name_that_no_case_has() -> None:
    done = run("--only", "nothing")
    assert done.returncode == 2
    assert "--only: must be part of a case's name, got nothing" in done.stderr


def test_a_case_that_raises_fails_alone(tmp_path: Path) -> None:
    from case import Case, Found, outcome
    from machine import this_machine

    def broken(*_: object) -> Found:
        raise RuntimeError("no luck")

    cases = [Case("broken", "", lambda _: "", broken), Case("fine", "", lambda _: "", lambda *_: Found("1", True))]
    cases += [Case("measured", "", lambda _: "", lambda *_: Found("2", None)), Case("bad", "", lambda _: "", lambda *_: Found("3", False))]
    found = [outcome(case, this_machine(), tmp_path / case.name) for case in cases]
    assert [(one.state, one.text) for one in found] == [
        ("failed", "RuntimeError: no luck"), ("ok", "1"), ("measured", "2"), ("failed", "3"),
    ]  # fmt: skip


def test_needs_name_what_a_machine_lacks() -> None:
    from machine import Machine, lacks_gpu, lacks_package

    a10 = Machine("NVIDIA A10G", 22.0, (8, 6), "2.13.0", "2.27.7", frozenset())
    assert lacks_gpu(a10) == ""
    assert lacks_gpu(a10, 70) == "needs 70 GiB of GPU memory, NVIDIA A10G has 22"
    assert lacks_gpu(a10, 0, (8, 9)) == "needs compute capability 8.9, NVIDIA A10G has 8.6"
    assert lacks_package(a10, "torchtitan") == "torchtitan is not installed"


def test_idle_time_is_what_no_kernel_and_no_copy_covers() -> None:
    from speed import idle_share

    events = [("kernel", 0, 40), ("kernel", 30, 20), ("gpu_memcpy", 60, 30), ("cpu_op", 50, 10), ("kernel", 90, 10)]
    assert idle_share({"traceEvents": [{"cat": cat, "ts": ts, "dur": dur} for cat, ts, dur in events]}) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="must have kernels"):
        idle_share({"traceEvents": [{"cat": "cpu_op", "ts": 0, "dur": 5}]})


@pytest.mark.slow
def test_cases_that_also_run_on_a_cpu_hold_there(tmp_path: Path) -> None:
    import restart
    import step_loop
    from machine import this_machine

    cases = (step_loop.resume, restart.restart_in_place, restart.restart_from_memory, restart.checkpoints_from_copies)
    for number, case in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        found = case(this_machine(), tmp_path / str(number))
        assert found.holds, found.figure
