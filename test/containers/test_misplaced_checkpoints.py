"""Checkpoints below the folder in which those of their trainer are looked for: the log says which marker finds them."""

import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict
from unittest import mock

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json
from slipway_driver.newest_checkpoint import newest_checkpoint, noticing
from slipway_driver.tables import NAMES_NEWEST, TRAINER_CHECKPOINTS


def noticed(folder: Path, trainer: str, times: int = 1, **job: str) -> "list[str]":
    said: "list[str]" = []
    marker = TRAINER_CHECKPOINTS[trainer].marker
    facts = {"progress_format": trainer, "committed_marker": marker, "checkpoint_mode": "managed", **job}
    attempt: Any = SimpleNamespace(job=SimpleNamespace(**facts), environ={"SLIPWAY_CHECKPOINT_URI": str(folder)})
    beat: "Dict[str, Any]" = {"step": 3}
    wrapped = noticing(attempt, lambda: beat)
    with mock.patch("slipway_driver.newest_checkpoint.log", said.append):
        assert [wrapped() for _ in range(times)] == [beat] * times
    return said


def save(folder: Path, trainer: str, step: int) -> str:
    """The path of a complete checkpoint."""
    marker = TRAINER_CHECKPOINTS[trainer].marker
    if marker == NAMES_NEWEST:
        (folder / f"global_step{step}").mkdir(parents=True)
        (folder / f"global_step{step}/states.pt").write_text("x")
        (folder / NAMES_NEWEST).write_text(f"global_step{step}")
        return str(folder / f"global_step{step}")
    path = folder / marker.replace("*", f"step={step}")
    path.parent.mkdir(parents=True)
    path.write_text("x")
    return str(path.parent)


@pytest.mark.parametrize("draw", range(50))
def test_the_marker_that_is_named_finds_the_checkpoint(tmp_path: Path, draw: int) -> None:
    dice = random.Random(f"{os.environ['SLIPWAY_TEST_SEED']} {draw}")
    trainer = dice.choice(sorted(TRAINER_CHECKPOINTS))
    names = ["out", "lightning_logs/version_3/checkpoints", "run-2026-11-27", "a/b c/d1"]
    saved = save(tmp_path / dice.choice(names), trainer, dice.randrange(1, 10**6))
    [said] = noticed(tmp_path, trainer, times=3)
    marker = said.rpartition("checkpoints.committedMarker: ")[2].strip('"')
    assert newest_checkpoint(str(tmp_path), marker=marker) == saved


def test_nothing_is_said_where_a_checkpoint_is_seen_or_somebody_decided(tmp_path: Path) -> None:
    assert noticed(tmp_path, "lightning") == []
    save(tmp_path / "out", "lightning", 20)
    assert noticed(tmp_path, "lightning", committed_marker="out/*.ckpt") == []
    assert noticed(tmp_path, "lightning", checkpoint_mode="fsx") == []
    assert noticed(tmp_path / "missing", "lightning") == []
    [said] = noticed(tmp_path, "lightning")
    assert said == (
        "no checkpoint is seen: out/step=20.ckpt is below the folder in which those of format lightning are looked for; "
        'set checkpoints.committedMarker: "out/*.ckpt"'
    )
    (tmp_path / "step=40.ckpt").write_text("x")
    assert noticed(tmp_path, "lightning") == []


def test_the_log_of_a_job_names_the_marker(tmp_path: Path) -> None:
    script = """
import os, pathlib
place = pathlib.Path(os.environ["SLIPWAY_CHECKPOINT_URI"]) / "lightning_logs/version_0/checkpoints"
place.mkdir(parents=True)
(place / "epoch=0-step=20.ckpt").write_text("x")
"""
    checkpoints = {
        "mode": "managed",
        "uri": "/opt/ml/checkpoints",
        "resumeFrom": "",
        "keep": 3,
        "intervalMinutes": "auto",
        "committedMarker": "*.ckpt",
    }
    job = job_json(heartbeatUri="s3://b/heartbeat.json", progress={"format": "lightning"}, checkpoints=checkpoints)
    world = FakeWorld(tmp_path, 1, job, {"train.py": script})
    s3 = FakeS3()
    world.start(s3.environ)
    assert world.wait() == [0], world.log("algo-1")
    s3.close()
    assert 'set checkpoints.committedMarker: "lightning_logs/version_*/checkpoints/*.ckpt"' in world.log("algo-1")
