"""The FSDP1 backend: the same losses and the same checkpoints as FSDP2, also with SMDDP's contract. Runs under PyTorch 2.5 too."""

import json
from pathlib import Path
from typing import Any

import pytest

from fake_world import direct_checkpoints
from forked import HUGGING_FACE_MODELS, PATHS, STUBS
from plain_loop import plain_losses
from rank_world import TRAINING, events, losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

HAS_FSDP2 = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


def fsdp1_job(**changes: Any) -> dict[str, Any]:
    return trainer_job(**changes | {"arguments": ["--backend", "fsdp1", *changes.get("arguments", [])]})


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("ranks", "changes"),
    [
        pytest.param(1, {}, id="one process"),
        pytest.param(2, {}, id="fully sharded"),
        pytest.param(2, {"parameters": {"reshard_after_forward": False}}, id="parameters kept after forward"),
        pytest.param(2, {"library": "ddp"}, id="replicated only"),
        pytest.param(4, {"parameters": {"replicate_degree": 2}}, id="hybrid sharded"),
        pytest.param(2, {"parameters": {"context_parallel_degree": 2}}, id="context parallel"),
        pytest.param(2, {"training": {"activationCheckpointing": "full"}}, id="full recomputation"),
        pytest.param(2, {"training": {"activationCheckpointing": "selective"}}, id="selective recomputation"),
    ],
)
def test_losses_equal_those_of_a_plain_loop(tmp_path: Path, shards: Path, reference: list[float], ranks: int, changes: dict) -> None:
    assert losses_of(tmp_path, ranks, fsdp1_job(**changes), {"train": shards}) == pytest.approx(reference, abs=1e-5)


@pytest.mark.drawn(1, of="FSDP1")
def test_tied_embeddings_stay_tied(tmp_path: Path, shards: Path) -> None:
    model = {"gatedMlp": False, "tiedEmbeddings": True}
    found = losses_of(tmp_path, 2, fsdp1_job(model=model), {"train": shards})
    assert found == pytest.approx(plain_losses(shards, TRAINING["steps"], **model), abs=1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("second", ["fsdp1", pytest.param("fsdp2", marks=pytest.mark.skipif(not HAS_FSDP2, reason="needs PyTorch 2.6"))])
def test_a_checkpoint_continues_on_another_number_of_ranks(tmp_path: Path, shards: Path, reference: list[float], second: str) -> None:
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    whole = fsdp1_job(checkpoints=checkpoints, arguments=["--save-every-steps", "3"], parameters={"replicate_degree": 2})
    code, output = run_ranks(tmp_path / "first", 4, whole, {"train": shards})
    assert code == 0, output
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    rest = trainer_job(checkpoints=checkpoints, arguments=["--backend", second])
    code, output = run_ranks(tmp_path / "second", 2, rest, {"train": shards})
    assert code == 0, output
    assert events(output, "resume")[0]["step"] == 3
    assert [event["loss"] for event in events(output, "step")] == pytest.approx(reference[3:], abs=1e-5)


@pytest.mark.drawn(1, of="FSDP1")
@pytest.mark.skipif(not HAS_FSDP2, reason="needs PyTorch 2.6")
def test_an_fsdp2_checkpoint_continues_under_fsdp1(tmp_path: Path, shards: Path, reference: list[float]) -> None:
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    losses_of(tmp_path / "first", 2, trainer_job(checkpoints=checkpoints, arguments=["--save-every-steps", "3"]), {"train": shards})
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    found = losses_of(tmp_path / "second", 2, fsdp1_job(checkpoints=checkpoints), {"train": shards})
    assert found == pytest.approx(reference[3:], abs=1e-5)


@pytest.mark.drawn(1, of="FSDP1")
def test_adapters_train_and_are_exported_merged(tmp_path: Path, shards: Path) -> None:
    from slipway_trainer.safetensors import SafetensorsFile

    losses_of(tmp_path / "base", 2, fsdp1_job(arguments=["--export-weights"]), {"train": shards})
    lora = {"rank": 4, "alpha": 8.0, "targets": ["q_proj", "v_proj"]}
    tune = fsdp1_job(training={"lora": lora}, weights="weights", arguments=["--export-weights"])
    losses_of(tmp_path / "tune", 2, tune, {"train": shards, "weights": tmp_path / "base/model"})
    before, after = (SafetensorsFile(tmp_path / run / "model/model.safetensors") for run in ("base", "tune"))
    changed = {name for name in before.names if not torch.equal(before.tensor(name), after.tensor(name))}
    assert changed == {f"model.layers.{layer}.self_attn.{part}.weight" for layer in (0, 1) for part in ("q_proj", "v_proj")}


@pytest.mark.drawn(1, of="FSDP1")
def test_smddp_is_imported_and_carries_the_stated_groups(tmp_path: Path, shards: Path, reference: list[float]) -> None:
    job = trainer_job(parameters={"replicate_degree": 2})
    job["distribution"]["collectives"] = "smddp"
    log = tmp_path / "calls"
    paths = (str(STUBS), *PATHS)
    code, output = run_ranks(tmp_path / "run", 4, job, {"train": shards}, paths=paths, preload=HUGGING_FACE_MODELS, STUB_LOG=str(log))
    assert code == 0, output
    assert [event["loss"] for event in events(output, "step")] == pytest.approx(reference, abs=1e-5)
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert [name for name, _ in calls].count("import smddp") == 4
    # The world; for each rank the groups that it is in: one that shares a copy, one that holds the same shard.
    made = [arguments["ranks"] for name, arguments in calls if name == "smddp group"]
    assert sorted(made) == [2] * 8 + [4] * 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"tensor_parallel_degree": 2}}, "tensor_parallel_degree: must be 1 with the built-in trainer's backend fsdp1"),
        ({"parameters": {"compile": True}}, "compile: must be false with the built-in trainer's backend fsdp1"),
    ],
)
def test_fails_with_77_for_what_fsdp1_cannot_do(tmp_path: Path, shards: Path, changes: dict, message: str) -> None:
    code, output = run_ranks(tmp_path, 2, fsdp1_job(**changes), {"train": shards})
    assert code == 77
    assert message in output
