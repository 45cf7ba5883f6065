"""`training.documentMask`: text whose documents do not see each other has the loss that transformers gives each document alone."""

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from plain_loop import plain_steps, publish_first_values
from rank_world import losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from slipway_trainer.batches import Batches  # noqa: E402
from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.loss import IGNORED  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
END = 256
MASKED = {"documentMask": True}
# Where a gradient is as small as AdamW's eps, rounding decides how far its weight goes in the first step: one text in ten moved losses by
# 1e-5 instead of 1e-6. Without the mask the first loss differs by 3e-3.
AFTER_ADAM = 1e-4


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of 1 to 60 tokens, rows of 32: some rows hold many, some are a part of one."""
    from slipway_trainer.tokenize.documents import documents
    from slipway_trainer.tokenize.shard_writer import ShardWriter, new_index
    from slipway_trainer.tokenize.tokenizers import ByteTokenizer

    rng, folder = random.Random(SEED), tmp_path_factory.mktemp("documents")
    texts = ["".join(rng.choices("abcdef ", k=rng.choice((0, 3, 8, 20, 59)))) for _ in range(120)]
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    writer = ShardWriter(folder / "shards", 0, new_index(ByteTokenizer(), "fixture"), 700)
    writer.write_all(documents([folder / "text.jsonl"], (0, 0), "text"), ByteTokenizer())
    return folder / "shards"


def alone(row: torch.Tensor) -> list[torch.Tensor]:
    """The documents of a row, cut behind each end of text."""
    ends = [place + 1 for place, token in enumerate(row.tolist()) if token == END]
    return [part for part in row.tensor_split(ends) if part.numel()]


def logits_alone(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Logits of rows whose documents a model sees one by one."""
    return torch.stack([torch.cat([model(part[None])[0] for part in alone(row)]) for row in tokens])


def batches_of(shards: Path, **training: Any) -> Batches:
    job = trainer_job(training=training)
    return Batches(shards, resolve_settings(job, [], {}).training, 257, 0, 1)


def test_rows_are_cut_where_documents_end_and_no_target_lies_in_another_one(shards: Path) -> None:
    plain, masked = batches_of(shards), batches_of(shards, **MASKED)
    left_out = 0
    for step in range(10):
        tokens, targets, documents, _padding = masked.micro_batch(step, 0, torch.device("cpu"))
        plain_tokens, plain_targets, none, _padding = plain.micro_batch(step, 0, torch.device("cpu"))
        assert torch.equal(tokens, plain_tokens) and none is None and documents is not None, f"seed {SEED}"
        assert [row.numel() for row in alone(tokens[0])] == documents[0].bincount().tolist(), f"seed {SEED}"
        assert torch.equal(targets == IGNORED, tokens == END), f"seed {SEED}"
        kept = targets != IGNORED
        assert torch.equal(targets[kept], plain_targets[kept])
        left_out += int((~kept).sum())
    assert left_out, f"seed {SEED}: no document ended"


@pytest.fixture(scope="module")
def world(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """Weights, and the losses of steps in which transformers sees each document alone."""
    folder = tmp_path_factory.mktemp("weights")
    job = trainer_job(training=MASKED)
    publish_first_values(folder, job)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return folder, plain_steps(model, lambda tokens: logits_alone(lambda part: model(part).logits, tokens), shards, job)


@pytest.mark.drawn(2, of="masked documents")
@pytest.mark.parametrize(
    ("ranks", "changes"),
    [
        (1, {}),
        (1, {"training": {"microBatchSize": 4}}),
        (2, {}),
        (2, {"library": "ddp"}),
        (2, {"arguments": ["--backend", "fsdp1"]}),
        (2, {"parameters": {"tensor_parallel_degree": 2}, "training": {"microBatchSize": 2}}),
        (2, {"arguments": ["--loss-chunks", "3"], "training": {"activationCheckpointing": "full"}}),
        (4, {"parameters": {"replicate_degree": 2}}),
        (2, {"parameters": {"context_parallel_degree": 2}}),
        (
            4,
            {"parameters": {"context_parallel_degree": 2, "tensor_parallel_degree": 2}, "training": {"microBatchSize": 2}},
        ),
    ],
    ids=[
        "one rank",
        "one micro-batch",
        "sharded",
        "replicated",
        "FSDP1",
        "tensor",
        "pieces, recomputed",
        "hybrid",
        "context",
        "context, tensor",
    ],  # fmt: skip
)
def test_steps_are_those_of_documents_alone(tmp_path: Path, shards: Path, world: tuple, ranks: int, changes: dict) -> None:
    weights, expected = world
    job = trainer_job(weights="weights", **(changes | {"training": MASKED | changes.get("training", {})}))
    found = losses_of(tmp_path, ranks, job, {"train": shards, "weights": weights})
    assert found[0] == pytest.approx(expected[0], abs=1e-5), f"seed {SEED}"
    assert found[1:] == pytest.approx(expected[1:], abs=AFTER_ADAM), f"seed {SEED}"


def test_the_first_loss_is_that_of_trl_packing(tmp_path: Path, shards: Path, world: tuple) -> None:
    trl = pytest.importorskip("trl.trainer.sft_trainer")
    weights, expected = world
    batches = batches_of(shards, microBatchSize=4, **MASKED)
    tokens, targets, *_documents = batches.micro_batch(0, 0, torch.device("cpu"))
    # The last token of a row is a target only.
    rows = [torch.cat((row, end[-1:])) if end[-1] != IGNORED else row for row, end in zip(tokens, targets, strict=True)]
    documents = [{"input_ids": part.tolist()} for row in rows for part in alone(row)]
    packed = trl.DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)(documents)
    model = transformers.AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)
    with torch.no_grad():
        found = model(input_ids=packed["input_ids"], position_ids=packed["position_ids"], labels=packed["labels"], use_cache=False).loss
    assert float(found) == pytest.approx(expected[0], abs=1e-5), f"seed {SEED}"


@pytest.mark.drawn(2, of="masked documents")
def test_evaluation_counts_the_same_targets_on_any_number_of_ranks(tmp_path: Path, shards: Path, world: tuple) -> None:
    weights, found = world[0], []
    for ranks, parameters in ((1, {}), (2, {}), (2, {"context_parallel_degree": 2}), (2, {"tensor_parallel_degree": 2})):
        words = ["--eval-channel", "heldout", "--eval-batches", "3", "--learning-rate", "0"]
        job = trainer_job(weights="weights", training=MASKED | {"steps": 1}, arguments=words, parameters=parameters)
        code, output = run_ranks(tmp_path / str(len(found)), ranks, job, {"train": shards, "heldout": shards, "weights": weights})
        assert code == 0, output
        found.append(float(re.search(r'"event":"eval","step":1,"loss":([\d.]+)', output).group(1)))
    assert found == pytest.approx(found[:1] * 4, abs=1e-5)


def test_fails_for_shards_that_do_not_say_what_ends_a_document(tmp_path: Path, shards: Path) -> None:
    copied = tmp_path / "shards"
    copied.mkdir()
    for file in shards.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    index = json.loads((copied / "index-00000.json").read_text())
    (copied / "index-00000.json").write_text(json.dumps({key: value for key, value in index.items() if key != "endOfText"}))
    with pytest.raises(InvalidRun, match="training.documentMask: must be used with shards whose index names one endOfText"):
        batches_of(copied, **MASKED)
