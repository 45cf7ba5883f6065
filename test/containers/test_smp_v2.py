"""The SMP v2 backend against a stub of torch.sagemaker that holds its contract; FSDP, gloo and the Hugging Face model are real."""

import json
from pathlib import Path
from typing import Any

import pytest

from forked import HUGGING_FACE_MODELS, PATHS, STUBS
from plain_loop import plain_losses, publish_first_values
from rank_world import TRAINING, events, run_ranks, trainer_job

pytest.importorskip("torch")
pytest.importorskip("transformers", reason="SMP's images have transformers")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

#: SMP's own FSDP works with the groups that SMP made; here one rank is the whole world.
PARAMETERS = {"hybrid_shard_degree": 1, "sm_activation_offloading": True, "activation_loading_horizon": 2}


def run_smp(root: Path, channels: dict[str, Path], ranks: int = 1, smp: dict | None = None, **changes: Any) -> tuple[str, list]:
    """Output, and the calls of rank 0's library."""
    parameters = PARAMETERS | (smp or {})
    job = trainer_job(library="smp-v2", parameters=parameters, **changes)
    variables = {"STUB_LOG": str(root / "calls"), "SM_HP_MP_PARAMETERS": json.dumps(parameters), "SLIPWAY_RUN_ID": "run-1"}
    code, output = run_ranks(root, ranks, job, channels, paths=(str(STUBS), *PATHS), fresh=True, preload=HUGGING_FACE_MODELS, **variables)
    assert code == 0, output
    return output, [json.loads(line) for line in (root / "calls").read_text().splitlines()]


def test_from_published_weights_losses_equal_those_of_a_plain_loop(tmp_path: Path, shards: Path) -> None:
    publish_first_values(tmp_path / "start", trainer_job())
    output, calls = run_smp(tmp_path, {"train": shards, "weights": tmp_path / "start"}, weights="weights")
    assert [event["loss"] for event in events(output, "step")] == pytest.approx(plain_losses(shards, TRAINING["steps"]), abs=1e-4)
    assert dict(calls)["FSDP"]["sync"] is True
    assert dict(calls)["tsm.transform"]["load_state_dict_from_rank0"] is True


def test_calls_come_in_the_order_of_the_reference_and_a_run_continues_from_smps_own_checkpoint(tmp_path: Path, shards: Path) -> None:
    checkpoints = {"mode": "fsx", "uri": str(tmp_path / "checkpoints"), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"}
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    training = {"activationCheckpointing": "full", "activationOffload": True, "precision": "bf16"}
    changes = {"checkpoints": checkpoints, "training": training, "arguments": ["--save-every-steps", "3"]}
    whole, calls = run_smp(tmp_path / "first", {"train": shards}, **changes)
    order = [name for name, _ in calls]
    expected = ["tsm.init", "tsm.transform", "DelayedParamIniter", "FSDP", "post_param_init_fn", "param_init_fn", "validated"]
    places = [order.index(name) for name in [*expected, "tsm.clip_grad_norm_"]]
    assert places == sorted(places)
    assert dict(calls)["tsm.init"]["parameters"] == PARAMETERS
    assert dict(calls)["FSDP"] == {"strategy": "HYBRID_SHARD", "param": "torch.bfloat16", "reduce": "torch.float32", "sync": False}
    saved = [arguments["checkpoint_id"] for name, arguments in calls if name == "tsm.save"]
    assert saved == [str(tmp_path / "checkpoints/step-3"), str(tmp_path / "checkpoints/step-6")]
    assert json.loads((tmp_path / "checkpoints/step-3/COMMITTED.json").read_text())["format"] == "smp"
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    rest, _ = run_smp(tmp_path / "second", {"train": shards}, **changes)
    assert [event["loss"] for event in events(rest, "step")] == [event["loss"] for event in events(whole, "step")][3:]


def test_experts_in_parallel_take_a_moe_config(tmp_path: Path, shards: Path) -> None:
    model = {"experts": 4, "expertsPerToken": 2}
    _, calls = run_smp(tmp_path, {"train": shards}, ranks=2, smp={"expert_parallel_degree": 2}, model=model)
    assert [arguments["config"] for name, arguments in calls if name == "tsm.transform"] == ["MoEConfig"] * 2
