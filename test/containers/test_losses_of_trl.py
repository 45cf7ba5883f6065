"""Fine-tuning on 1 and 2 ranks: loss and gradient norm of every step are those of TRL on the same batch, in float32."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

from plain_loop import publish_first_values
from rank_world import events, run_ranks, trainer_job

pytest.importorskip("torch")
pytest.importorskip("trl")
pytestmark = [pytest.mark.torch, pytest.mark.drawn(1, of="losses of TRL")]

import torch  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from peft import LoraConfig, PeftModel  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer  # noqa: E402

from slipway_trainer.examples import PackedRows  # noqa: E402
from slipway_trainer.initialise import first_values  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402
from slipway_trainer.shard_format import read_index  # noqa: E402
from slipway_trainer.weights import adapter_name  # noqa: E402

STEPS = 20
LORA = {"rank": 4, "alpha": 12, "targets": ["q_proj", "v_proj", "down_proj"]}
ARGUMENTS = ["--learning-rate", "0.002", "--warmup-steps", "0", "--schedule", "constant", "--weight-decay", "0"]
LENGTH = 112
#: Micro-batches have other numbers of targets each, and the last document is longer than a row.
CONVERSATIONS = data.CONVERSATIONS + [
    {"messages": [data.user("Go on."), data.assistant("word " * number)]} for number in [*range(1, 16), 90]
]
PREFERENCES = data.PREFERENCES + [
    {"prompt": "Go on:", "chosen": " word" * number, "rejected": " no" * (12 - number)} for number in range(1, 11)
]


def job_of(objective: str, rows: int, **changes: Any) -> dict[str, Any]:
    training = {"objective": objective, "steps": STEPS, "sequenceLength": LENGTH, "globalBatchSize": rows} | changes.pop("training", {})
    return trainer_job(training=training, model={"vocabularySize": 320}, weights="weights", **changes)


def adapted(trainer: Any, job: dict[str, Any]) -> Any:
    """The trainer, its adapters beginning with the values that ours begin with: PEFT draws them from another distribution."""
    settings = resolve_settings(job, [], {})
    names = {adapter_name(f"{layer}.lora_a", settings.architecture): f"{layer}.lora_a" for layer in layers_of(settings)}
    begun = 0
    for name, parameter in trainer.model.named_parameters():
        ours = names.get(name.replace(".default.", "."))
        if ours is not None:
            values = first_values(ours, parameter.shape, settings.architecture.layers, settings.training.seed, parameter.device)
            parameter.data.copy_(values)
            begun += 1
    assert begun == len(names) == 6, "two layers with three adapters each"
    return trainer


def layers_of(settings: Any) -> list[str]:
    model = Transformer(settings.architecture)
    return [name for name, module in model.named_modules() if name.rpartition(".")[2] in LORA["targets"]]


def peft_of() -> LoraConfig:
    return LoraConfig(r=LORA["rank"], lora_alpha=LORA["alpha"], target_modules=LORA["targets"], lora_dropout=0.0, task_type="CAUSAL_LM")


def steps_of(root: Path, ranks: int, job: dict[str, Any], shards: Path, weights: Path) -> list[tuple[float, float]]:
    job = job | {"arguments": [*ARGUMENTS, *job["arguments"][4:]]}
    code, output = run_ranks(root, ranks, job, {"train": shards, "weights": weights})
    assert code == 0, output
    return [(event["loss"], event["gradientNorm"]) for event in events(output, "step")]


def theirs(trainer: Any) -> list[tuple[float, float]]:
    """Loss and gradient norm of TRL's steps, as its training loop computes them."""
    found: list[tuple[float, float]] = []
    losses: list[float] = []
    inner: Callable[..., Any] = trainer.compute_loss

    def recorded(*arguments: Any, **options: Any) -> Any:
        loss = inner(*arguments, **options)
        losses.append(float((loss[0] if isinstance(loss, tuple) else loss).detach()))
        return loss

    clip = trainer.accelerator.clip_grad_norm_

    def clipped(parameters: Any, norm: float, **options: Any) -> Any:
        before = clip(parameters, norm, **options)
        found.append((losses[-1], float(before)))
        return before

    trainer.compute_loss, trainer.accelerator.clip_grad_norm_ = recorded, clipped
    trainer.train()
    return found


def trl_options(root: Path, kind: type, rows: int, **changes: Any) -> Any:
    return kind(
        output_dir=str(root / "trl"), report_to=[], use_cpu=True, bf16=False, max_length=LENGTH, max_steps=STEPS, save_strategy="no",
        per_device_train_batch_size=rows, learning_rate=0.002, lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1.0,
        adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=1e-8, gradient_checkpointing=False, disable_tqdm=True, **changes,
    )  # fmt: skip


def close(found: list[tuple[float, float]], expected: list[tuple[float, float]]) -> None:
    assert len(found) == len(expected) == STEPS
    for ours, other in zip(found, expected, strict=True):
        assert ours == pytest.approx(other, abs=1e-5, rel=1e-5)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A folder, a tokenizer and weights."""
    root = tmp_path_factory.mktemp("trl")
    publish_first_values(root / "weights", job_of("sft", 4))
    return root, data.write_tokenizer(root / "tokenizer"), root / "weights"


def model_at(weights: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)


def test_fine_tuning_takes_the_steps_that_trl_takes(tmp_path: Path, world: tuple[Path, Path, Path], plays_all: bool) -> None:
    _root, tokenizer, weights = world
    trainer = SFTTrainer(
        model=model_at(weights),
        args=trl_options(tmp_path, SFTConfig, len(CONVERSATIONS), assistant_only_loss=True),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(CONVERSATIONS),
    )
    expected = theirs(trainer)
    assert expected[-1][0] < expected[0][0] - 0.5, "the reference itself must learn"
    shards = data.tokenise(tmp_path, CONVERSATIONS, tokenizer, "--shard-tokens", "200")
    rows = rows_of(shards)
    layouts = [(1, 1, {}), (2, 1, {}), (1, rows, {}), (2, 1, {"context_parallel_degree": 2})]
    for ranks, micro, parameters in layouts if plays_all else random.Random(os.environ["SLIPWAY_TEST_SEED"]).sample(layouts, 1):
        job = job_of("sft", rows, training={"microBatchSize": micro}, parameters=parameters)
        close(steps_of(tmp_path / f"{ranks}-{micro}-{len(parameters)}", ranks, job, shards, weights), expected)


@pytest.mark.parametrize("name", ["qwen3", "glm4moe", "phi3_5", "llama3"])
def test_a_published_template_takes_the_steps_that_trl_takes(tmp_path: Path, world: tuple[Path, Path, Path], name: str) -> None:
    _root, _tokenizer, weights = world
    source = (Path(trl.__file__).parent / f"chat_templates/{name}.jinja").read_text(encoding="utf-8")
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer", source)
    trainer = SFTTrainer(
        model=model_at(weights),
        args=trl_options(tmp_path, SFTConfig, len(CONVERSATIONS), assistant_only_loss=True),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(CONVERSATIONS),
    )
    shards = data.tokenise(tmp_path, CONVERSATIONS, tokenizer)
    rows = PackedRows(read_index(shards), LENGTH).samples
    close(steps_of(tmp_path / "run", 1, job_of("sft", rows), shards, weights), theirs(trainer))


def rows_of(shards: Path) -> int:
    rows = PackedRows(read_index(shards), LENGTH).samples
    assert rows % 2 == 0 and rows < len(CONVERSATIONS) / 2, f"{rows} rows are no test of packing and of two ranks"
    return rows


def test_preferences_take_the_steps_that_trl_takes(tmp_path: Path, world: tuple[Path, Path, Path]) -> None:
    _root, tokenizer, weights = world
    trainer = DPOTrainer(
        model=model_at(weights),
        ref_model=model_at(weights),
        args=trl_options(tmp_path, DPOConfig, len(PREFERENCES), beta=0.3),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(PREFERENCES),
    )
    expected = theirs(trainer)
    assert expected[-1][0] < expected[0][0] - 0.2, "the reference itself must learn"
    shards = data.tokenise(tmp_path, PREFERENCES, tokenizer, "--shard-tokens", "200")
    for ranks, micro in ((1, 3), (2, 2)):
        job = job_of("dpo", len(PREFERENCES), training={"microBatchSize": micro}, arguments=["--beta", "0.3"])
        close(steps_of(tmp_path / f"{ranks}-{micro}", ranks, job, shards, weights), expected)


def test_adapters_take_the_steps_of_peft_and_are_exported_for_it(tmp_path: Path, world: tuple[Path, Path, Path]) -> None:
    _root, tokenizer, weights = world
    shards = data.tokenise(tmp_path, CONVERSATIONS, tokenizer)
    rows, words = rows_of(shards), ["--export-weights", "--export-adapter"]
    job = job_of("sft", rows, training={"lora": LORA}, arguments=words)
    trainer = SFTTrainer(
        model=model_at(weights),
        args=trl_options(tmp_path, SFTConfig, len(CONVERSATIONS), assistant_only_loss=True),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(CONVERSATIONS),
        peft_config=peft_of(),
    )
    expected = theirs(adapted(trainer, job))
    close(steps_of(tmp_path / "run", 2, job, shards, weights), expected)
    tokens = torch.randint(0, 320, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = PeftModel.from_pretrained(model_at(weights), tmp_path / "run/model/adapter")(tokens).logits
        torch.testing.assert_close(found, AutoModelForCausalLM.from_pretrained(tmp_path / "run/model")(tokens).logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(found, trainer.model(tokens).logits, atol=1e-4, rtol=1e-4)
        assert (found - model_at(weights)(tokens).logits).abs().max() > 0.01, "the adapter must change something"


def test_preferences_with_adapters_are_held_to_the_model_without_them(tmp_path: Path, world: tuple[Path, Path, Path]) -> None:
    _root, tokenizer, weights = world
    job = job_of("dpo", len(PREFERENCES), training={"microBatchSize": 2, "lora": LORA})
    trainer = DPOTrainer(
        model=model_at(weights),
        args=trl_options(tmp_path, DPOConfig, len(PREFERENCES), beta=0.1),
        processing_class=AutoTokenizer.from_pretrained(tokenizer.parent),
        train_dataset=Dataset.from_list(PREFERENCES),
        peft_config=peft_of(),
    )
    expected = theirs(adapted(trainer, job))
    assert expected[-1][0] < expected[0][0] - 0.01, "the reference itself must learn"
    close(steps_of(tmp_path / "run", 2, job, data.tokenise(tmp_path, PREFERENCES, tokenizer), weights), expected)
