"""The DeepSpeed backend with the real DeepSpeed on CPU: each stage trains as a plain loop does, and continues from its checkpoints."""

import json
from pathlib import Path
from typing import Any

import pytest

from fake_world import direct_checkpoints
from rank_world import events, losses_of, run_ranks, trainer_job

pytest.importorskip("deepspeed", reason="deepspeed is not installed; npm run test:torch-2.5 has it")
pytestmark = pytest.mark.torch


def deepspeed_job(stage: int, **changes: Any) -> dict[str, Any]:
    return trainer_job(library="deepspeed", parameters={"zero_optimization": {"stage": stage}}, **changes)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_losses_equal_those_of_a_plain_loop(tmp_path: Path, shards: Path, reference: list[float], stage: int) -> None:
    assert losses_of(tmp_path, 2, deepspeed_job(stage), {"train": shards}) == pytest.approx(reference, abs=1e-4)


@pytest.mark.parametrize("stage", [1, 3])
def test_a_run_continues_from_deepspeeds_own_checkpoint(tmp_path: Path, shards: Path, reference: list[float], stage: int) -> None:
    checkpoints = {"mode": "fsx", "uri": str(tmp_path / "checkpoints"), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"}
    job = deepspeed_job(stage, checkpoints=checkpoints, arguments=["--save-every-steps", "3", "--export-weights"])
    losses_of(tmp_path / "first", 2, job, {"train": shards})
    record = json.loads((tmp_path / "checkpoints/step-3/COMMITTED.json").read_text())
    assert record["format"] == "deepspeed" and len(record["objects"]) >= 3
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    code, output = run_ranks(tmp_path / "second", 2, job, {"train": shards})
    assert code == 0, output
    assert events(output, "resume")[0]["step"] == 3
    assert [event["loss"] for event in events(output, "step")] == pytest.approx(reference[3:], abs=1e-4)
    exported = [(tmp_path / run / "model/model.safetensors").read_bytes() for run in ("first", "second")]
    assert exported[0] == exported[1]


def test_fails_with_77_for_checkpoints_in_s3(tmp_path: Path, shards: Path) -> None:
    checkpoints = direct_checkpoints("s3://bucket/run")
    code, output = run_ranks(tmp_path, 1, deepspeed_job(1, checkpoints=checkpoints), {"train": shards})
    assert code == 77
    assert "checkpoints.mode: must be fsx or managed with deepspeed" in output
