"""PyTorch's profiler in the trainer: whole runs on two ranks, and what is in their traces."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from rank_world import events, run_ranks, trainer_job  # noqa: E402
from slipway_trainer.profiling import place_of  # noqa: E402


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


def test_a_run_that_ends_within_the_window_leaves_what_was_seen(shards: Path, tmp_path: Path) -> None:
    code, output = profiled(tmp_path, shards, ["--profile", "--profile-after-steps", "3", "--profile-steps", "50"])
    assert code == 0, output
    assert "ProfilerStep#5" in operations(tmp_path / "data/profile/rank-0-step-6.json.gz")


def test_a_trace_that_cannot_be_kept_is_said_and_ends_nothing(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    code, output = profiled(tmp_path, shards, ["--profile", "--profile-after-steps", "1", "--profile-steps", "1"])
    assert code == 0, output
    assert [event["step"] for event in events(output, "profile") if "error" in event] == [2]


def test_fails_with_77_for_a_window_without_steps(shards: Path, tmp_path: Path) -> None:
    code, output = profiled(tmp_path, shards, ["--profile", "--profile-steps", "0"])
    assert code == 77
    assert "--profile-after-steps, --profile-steps: must be at least 0 and at least 1, got 10 and 0" in output


def test_lies_beside_the_heartbeat_or_where_an_isolated_job_may_write() -> None:
    assert place_of("s3://b/runs/nlp/r-1/heartbeat.json", 3, {}) == "s3://b/runs/nlp/r-1/profile/a003"
    assert place_of(None, 3, {"SM_OUTPUT_DATA_DIR": "/out"}) == "/out/profile"
