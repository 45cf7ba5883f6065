"""Every way to lay the model out trains the same model: losses equal those of one process, written as a plain loop."""

from pathlib import Path
from typing import Any

import pytest

from fake_world import direct_checkpoints
from plain_loop import plain_losses
from rank_world import TRAINING, events, losses_of, run_ranks, trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]


#: Ranks of one group take their micro-batches by twos: what takes time is the number of micro-batches, and two of them are left.
TENSOR = {"parameters": {"tensor_parallel_degree": 2}, "training": {"microBatchSize": 2}}
LAYOUTS: list[tuple[str, int, dict[str, Any]]] = [
    ("one process", 1, {}),
    ("fully sharded", 2, {}),
    ("parameters kept after forward", 2, {"parameters": {"reshard_after_forward": False}}),
    ("replicated only", 2, {"library": "ddp"}),
    ("hybrid sharded", 4, {"parameters": {"replicate_degree": 2}}),
    ("tensor parallel", 2, TENSOR),
    ("tensor parallel, sharded", 4, {"parameters": {"tensor_parallel_degree": 2}}),
    ("tensor parallel, vocabulary in equal parts", 2, TENSOR | {"model": {"vocabularySize": 258}}),
    ("tensor parallel, loss in pieces", 2, TENSOR | {"arguments": ["--loss-chunks", "3"]}),
    ("tensor parallel, selective recomputation", 2, TENSOR | {"training": {"activationCheckpointing": "selective", "microBatchSize": 2}}),
    ("tensor and context parallel", 4, TENSOR | {"parameters": {"tensor_parallel_degree": 2, "context_parallel_degree": 2}}),
    ("context parallel", 2, {"parameters": {"context_parallel_degree": 2}}),
    ("context parallel, replicated", 4, {"parameters": {"context_parallel_degree": 2, "replicate_degree": 2}}),
    ("one accumulation step less", 2, {"training": {"microBatchSize": 2}}),
    ("full recomputation", 2, {"training": {"activationCheckpointing": "full"}}),
    ("layers recomputed in groups", 2, {"training": {"activationCheckpointing": "full"}, "arguments": ["--recompute-layers", "2"]}),
    ("selective recomputation", 2, {"training": {"activationCheckpointing": "selective"}}),
    ("activations offloaded", 1, {"training": {"activationOffload": True}}),
    ("loss in pieces", 2, {"arguments": ["--loss-chunks", "4"]}),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("ranks", "changes"), [(ranks, changes) for _, ranks, changes in LAYOUTS], ids=[name for name, _, _ in LAYOUTS])
def test_losses_equal_those_of_a_plain_loop(tmp_path: Path, shards: Path, reference: list[float], ranks: int, changes: dict) -> None:
    found = losses_of(tmp_path, ranks, trainer_job(**changes), {"train": shards})
    expected = plain_losses(shards, TRAINING["steps"], **changes["model"]) if "model" in changes else reference
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.drawn(1, of="further layouts")
def test_fifty_steps_on_two_ranks_stay_within_1e_5(tmp_path: Path, shards: Path) -> None:
    found = losses_of(tmp_path, 2, trainer_job(training={"steps": 50}), {"train": shards})
    assert found == pytest.approx(plain_losses(shards, 50), abs=1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "model", [{"gatedMlp": False, "tiedEmbeddings": True}, {"experts": 4, "expertsPerToken": 2}], ids=["gpt", "mixtral"]
)
def test_other_families_train_the_same_sharded(tmp_path: Path, shards: Path, model: dict) -> None:
    found = losses_of(tmp_path, 2, trainer_job(model=model), {"train": shards})
    assert found == pytest.approx(plain_losses(shards, TRAINING["steps"], **model), abs=1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("ranks", "parameters"),
    [
        pytest.param(2, {"expert_parallel_degree": 2}, id="every rank other experts"),
        pytest.param(4, {"expert_parallel_degree": 2}, id="experts sharded too"),
        pytest.param(4, {"expert_parallel_degree": 2, "replicate_degree": 2}, id="experts replicated too"),
    ],
)
def test_experts_on_other_ranks_train_the_same_and_continue_on_one(tmp_path: Path, shards: Path, ranks: int, parameters: dict) -> None:
    from slipway_trainer.safetensors import SafetensorsFile

    model = {"experts": 4, "expertsPerToken": 2}
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    common = {"model": model, "checkpoints": checkpoints, "arguments": ["--export-weights", "--save-every-steps", "3"]}
    expected = plain_losses(shards, TRAINING["steps"], **model)
    found = losses_of(tmp_path / "spread", ranks, trainer_job(**common, parameters=parameters), {"train": shards})
    assert found == pytest.approx(expected, abs=1e-5)
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    assert losses_of(tmp_path / "one", 1, trainer_job(**common), {"train": shards}) == pytest.approx(expected[3:], abs=1e-5)
    spread, one = (SafetensorsFile(tmp_path / run / "model/model.safetensors") for run in ("spread", "one"))
    assert spread.names == one.names
    for name in one.names:
        torch.testing.assert_close(spread.tensor(name), one.tensor(name), atol=1e-4, rtol=0)


@pytest.mark.drawn(1, of="further layouts")
def test_bf16_follows_fp32(tmp_path: Path, shards: Path, reference: list[float]) -> None:
    found = losses_of(tmp_path, 2, trainer_job(training={"precision": "bf16"}), {"train": shards})
    assert found == pytest.approx(reference, abs=0.05)
    assert found != pytest.approx(reference, abs=1e-5)


@pytest.mark.drawn(1, of="further layouts")
@pytest.mark.parametrize("recipe", ["tensorwise", "rowwise"])
def test_float8_follows_fp32_and_its_products_are_those_of_float8(
    tmp_path: Path, shards: Path, reference: list[float], recipe: str
) -> None:
    training = {"activationCheckpointing": "selective"}
    float8 = {"precision": "fp8", "fp8Recipe": recipe}
    found = losses_of(tmp_path, 2, trainer_job(training=training | float8), {"train": shards})
    bf16 = losses_of(tmp_path, 2, trainer_job(training=training | {"precision": "bf16"}), {"train": shards})
    assert found == pytest.approx(reference, abs=0.1)
    assert found != pytest.approx(bf16, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--loss-chunks", "4"]], ids=["whole loss", "loss in pieces"])
def test_compiled_blocks_and_losses_train_the_same(tmp_path: Path, shards: Path, reference: list[float], arguments: list[str]) -> None:
    job = trainer_job(parameters={"compile": True}, training={"activationCheckpointing": "selective"}, arguments=arguments)
    assert losses_of(tmp_path, 1, job, {"train": shards}) == pytest.approx(reference, abs=1e-4)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((4, {}), (2, {})),
        ((2, {}), (4, {"parameters": {"tensor_parallel_degree": 2}})),
        ((4, {"parameters": {"tensor_parallel_degree": 2}}), (1, {})),
        ((2, {"library": "ddp"}), (1, {})),
        ((2, {}), (1, {"parameters": {"compile": True}})),
        ((1, {"parameters": {"compile": True}}), (2, {})),
    ],
    ids=[
        "4 to 2 ranks",
        "sharded to tensor parallel",
        "tensor parallel to one",
        "replicated to one",
        "sharded to compiled on one",
        "compiled on one to sharded",
    ],
)
def test_a_run_continues_in_another_layout(tmp_path: Path, shards: Path, reference: list[float], first: tuple, second: tuple) -> None:
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    save = ["--save-every-steps", "3"]
    whole = trainer_job(checkpoints=checkpoints, arguments=save, **first[1])
    code, output = run_ranks(tmp_path / "first", first[0], whole, {"train": shards})
    assert code == 0, output
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    rest = trainer_job(checkpoints=checkpoints, arguments=save, **second[1])
    code, output = run_ranks(tmp_path / "second", second[0], rest, {"train": shards})
    assert code == 0, output
    assert events(output, "resume")[0]["step"] == 3
    assert [event["loss"] for event in events(output, "step")] == pytest.approx(reference[3:], abs=1e-5)


@pytest.mark.drawn(1, of="further layouts")
def test_evaluation_uses_the_same_samples_every_time(tmp_path: Path, shards: Path) -> None:
    job = trainer_job(arguments=["--eval-channel", "heldout", "--eval-every-steps", "2", "--eval-batches", "3"])
    code, output = run_ranks(tmp_path, 2, job, {"train": shards, "heldout": write_shards(tmp_path / "heldout", 2000, seed=2)})
    assert code == 0, output
    found = events(output, "eval")
    assert [event["step"] for event in found] == [2, 4, 6], "the last step is evaluated too"
    assert found[1]["loss"] < found[0]["loss"]
    phases = [(event["name"], event["state"]) for event in events(output, "phase")]
    assert phases.count(("eval", "begin")) == phases.count(("eval", "end")) == 3


def test_an_evaluation_channel_below_a_global_batch_is_told(tmp_path: Path, shards: Path) -> None:
    for tokens, is_small in ((100, True), (200, False)):
        job = trainer_job(arguments=["--eval-channel", "heldout"], training={"steps": 1})
        heldout = write_shards(tmp_path / f"heldout{tokens}", tokens)
        code, output = run_ranks(tmp_path / str(tokens), 1, job, {"train": shards, "heldout": heldout})
        assert code == 0, output
        assert ("warning: channel heldout: 3 samples are fewer than globalBatchSize 4: some count twice" in output) == is_small


@pytest.mark.drawn(1, of="further layouts")
def test_the_loss_of_an_evaluation_does_not_depend_on_the_number_of_ranks(tmp_path: Path, shards: Path) -> None:
    heldout = write_shards(tmp_path / "heldout", 2000, seed=2)
    found = []
    for ranks, changes in ((1, {}), (2, {}), (4, {}), (2, {"training": {"microBatchSize": 2}})):
        # The same model everywhere: nothing is learned before its only evaluation, after the last step.
        job = trainer_job(arguments=["--eval-channel", "heldout", "--eval-batches", "3", "--learning-rate", "0"], **changes)
        code, output = run_ranks(tmp_path / str(len(found)), ranks, job, {"train": shards, "heldout": heldout})
        assert code == 0, output
        (event,) = events(output, "eval")
        found.append(event["loss"])
    assert found == pytest.approx([found[0]] * 4, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"library": "megatron"}, "distribution.library: must be fsdp"),
        ({"training": {"precision": "fp16"}}, "training.precision: must be bf16, fp32 or fp8"),
        ({"training": {"precision": "mxfp8"}}, "must be bf16, fp32 or fp8 for the built-in trainer with fsdp, got mxfp8"),
        ({"training": {"precision": "fp8", "fp8Recipe": "blockwise"}}, "fp8Recipe: must be tensorwise or rowwise for the built-in"),
        ({"parameters": {"expert_parallel_degree": 2}}, "must have an expert degree of 1 for a model without experts"),
        ({"training": {"lora": {"rank": 2, "alpha": 4, "targets": ["no_proj"]}}}, "must name layers of the model"),
    ],
)
def test_fails_with_77_for_what_it_cannot_do(tmp_path: Path, shards: Path, changes: dict, message: str) -> None:
    code, output = run_ranks(tmp_path, 1, trainer_job(**changes), {"train": shards})
    assert code == 77
    assert message in output


def test_fails_for_compiled_layers_of_tensor_parallel_matrices() -> None:
    from slipway_trainer.exits import InvalidRun
    from slipway_trainer.limits import backend_name
    from slipway_trainer.settings import resolve_settings

    job = trainer_job(parameters={"tensor_parallel_degree": 2, "compile": True})
    with pytest.raises(InvalidRun, match="compile: must be false with tensor_parallel_degree"):
        backend_name(resolve_settings(job, job["arguments"], {}), "2.15.0")
