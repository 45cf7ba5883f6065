"""PyTorch's profiler in the trainer: whole runs on two ranks, and what is in their traces."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from rank_world import events, run_ranks, trainer_job  # noqa: E402
from slipway_trainer.checkpoint.store import open_store  # noqa: E402
from slipway_trainer.profiling import StepTrace, place_of  # noqa: E402


def profiled(root: Path, shards: Path, arguments: list[str], **environ: str) -> tuple[int, str]:
    return run_ranks(root, 2, trainer_job(arguments=arguments), {"train": shards}, SM_OUTPUT_DATA_DIR=str(root / "data"), **environ)


def operations(trace: Path) -> list[str]:
    found: dict[str, Any] = json.loads(gzip.decompress(trace.read_bytes()))
    return [str(event.get("name")) for event in found["traceEvents"]]


def test_traces_the_steps_after_the_first_ones_on_rank_0_and_changes_no_loss(shards: Path, tmp_path: Path) -> None:
    code, output = profiled(tmp_path / "on", shards, ["--profile", "--profile-after-steps", "2", "--profile-steps", "2"])
    assert code == 0, output
    folder = tmp_path / "on/data/profile"
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0-step-4.json.gz", "rank-0-step-4.txt"]
    names = operations(folder / "rank-0-step-4.json.gz")
    assert sorted({name for name in names if name.startswith("ProfilerStep")}) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert any("all_gather" in name for name in names) and "aten::mm" in names
    assert "aten::mm" in (folder / "rank-0-step-4.txt").read_text()
    assert events(output, "profile") == [{"event": "profile", "step": 4, "steps": 2, "uri": str(folder / "rank-0-step-4.json.gz")}]
    code, plain = profiled(tmp_path / "off", shards, [])
    assert code == 0 and not (tmp_path / "off/data").exists()
    assert [event["loss"] for event in events(plain, "step")] == [event["loss"] for event in events(output, "step")]


def step_through(folder: Path, after: int, steps: int, of: int) -> None:
    """A process that multiplies two matrices in each of its steps."""
    trace = StepTrace(after, steps, torch.device("cpu"), open_store(str(folder)))
    for step in range(1, of + 1):
        torch.ones(4, 4) @ torch.ones(4, 4)
        trace.after_step(step)
    trace.close()


def test_a_run_that_ends_within_the_window_leaves_what_was_seen(tmp_path: Path) -> None:
    step_through(tmp_path, 3, 50, of=6)
    assert "ProfilerStep#5" in operations(tmp_path / "rank-0-step-6.json.gz")


def test_a_run_that_ends_before_the_window_leaves_nothing(tmp_path: Path) -> None:
    step_through(tmp_path, 10, 3, of=6)
    assert list(tmp_path.iterdir()) == []


def test_a_trace_that_cannot_be_kept_is_said_and_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    step_through(tmp_path / "file", 1, 1, of=4)
    assert [event["step"] for event in events(capsys.readouterr().out, "profile") if "error" in event] == [2]


def test_fails_with_77_for_a_window_without_steps(shards: Path, tmp_path: Path) -> None:
    code, output = profiled(tmp_path, shards, ["--profile", "--profile-steps", "0"])
    assert code == 77
    assert "code.arguments.profile-steps: must be a whole number of at least 1, got 0" in output


def test_lies_beside_the_heartbeat_or_where_an_isolated_job_may_write() -> None:
    assert place_of("s3://b/runs/nlp/r-1/heartbeat.json", 3, {}) == "s3://b/runs/nlp/r-1/profile/a003"
    assert place_of(None, 3, {"SM_OUTPUT_DATA_DIR": "/out"}) == "/out/profile"
