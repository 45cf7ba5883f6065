"""Balance of experts: losses and the movement of the routing bias are those that were published, in every layout."""

from collections import Counter
from pathlib import Path
from typing import Any

import chat_data
import pytest
from test_mixture_layouts import LAYOUTS, MODELS

from fake_world import direct_checkpoints
from plain_loop import first_model, publish
from rank_world import TRAINING, events, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.architecture_parts import Routing  # noqa: E402
from slipway_trainer.balance import balance_loss, expert_counts, router_z_loss  # noqa: E402
from slipway_trainer.batches import Batches  # noqa: E402
from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.feed_forward import Router, chosen_experts  # noqa: E402
from slipway_trainer.limits import backend_name  # noqa: E402
from slipway_trainer.optimizer import learning_rate  # noqa: E402
from slipway_trainer.safetensors import SafetensorsFile  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402

V3 = MODELS["deepseek_v3"]
RATE = 0.02
ALL = ["--balance-loss", "0.5", "--router-z-loss", "0.02", "--routing-bias-rate", str(RATE)]
BIAS = "model.layers.1.mlp.gate.e_score_correction_bias"


def logits_of(sequences: int = 3, length: int = 20, experts: int = 8) -> Any:
    return torch.randn(sequences, length, experts, generator=torch.Generator().manual_seed(4)) * 2


def by_the_equations(logits: Any, per_token: int, sigmoid: bool) -> float:
    """DeepSeek-V3, equations 17 to 20 with alpha 1, of each sequence, token by token."""
    total = 0.0
    for sequence in logits.tolist():
        rows = [torch.tensor(row).sigmoid() if sigmoid else torch.tensor(row).softmax(0) for row in sequence]
        experts, length = len(sequence[0]), len(sequence)
        for expert in range(experts):
            chosen = sum(expert in row.topk(per_token).indices.tolist() for row in rows)
            share = sum(float(row[expert] / row.sum()) for row in rows) / length
            total += experts / (per_token * length) * chosen * share
    return total / len(logits)


@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_the_loss_of_sequences_is_that_of_its_equations(score: str) -> None:
    logits, routing = logits_of(), Routing(score=score)
    chosen = chosen_experts(logits.flatten(0, 1), routing, 2)[1].unflatten(0, (3, 20))
    counted = torch.ones(3, 20)
    found = balance_loss(logits, chosen, routing, counted)
    assert float(found) == pytest.approx(by_the_equations(logits, 2, score == "sigmoid"), rel=1e-5)
    together = balance_loss(logits.flatten(0, 1)[None], chosen.flatten(0, 1)[None], routing, counted.view(1, -1))
    assert float(found) != pytest.approx(float(together), rel=1e-3)


def test_the_loss_of_a_micro_batch_is_that_of_transformers() -> None:
    mixtral = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
    logits, routing = logits_of().flatten(0, 1), Routing()
    chosen = chosen_experts(logits, routing, 2)[1]
    for padding in (0, 7, 19):
        counted = torch.ones(3, 20)
        counted[1, 20 - padding :] = 0
        found = balance_loss(logits[None], chosen[None], routing, counted.view(1, -1))
        # Theirs counts each of a token's choices as a whole: even loads give as many as a token has.
        theirs = mixtral.load_balancing_loss_func((logits,), 8, 2, counted if padding else None)
        assert 2 * float(found) == pytest.approx(float(theirs), rel=1e-5), padding
    even = balance_loss(torch.zeros(1, 8, 8), torch.arange(8).view(1, 8, 1), routing, torch.ones(1, 8))
    assert float(even) == pytest.approx(1.0)


def test_the_loss_of_the_router_is_that_of_its_equation() -> None:
    logits = logits_of()
    assert float(router_z_loss(logits, torch.ones(3, 20))) == pytest.approx(float(logits.exp().sum(-1).log().pow(2).mean()), rel=1e-5)


@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_padding_behind_sequences_changes_no_loss_and_no_count(score: str) -> None:
    logits, routing = logits_of(), Routing(score=score)
    padded = torch.cat((logits, 9 * torch.ones(3, 11, 8)), dim=1)
    results = []
    for given, counted in ((logits, torch.ones(3, 20)), (padded, torch.cat((torch.ones(3, 20), torch.zeros(3, 11)), dim=1))):
        chosen = chosen_experts(given.flatten(0, 1), routing, 2)[1].unflatten(0, given.shape[:2])
        losses = torch.stack([balance_loss(given, chosen, routing, counted), router_z_loss(given, counted)])
        results.append((losses, expert_counts(chosen, counted, 8)))
    torch.testing.assert_close(results[0], results[1])


PADDED_LAYOUTS = {
    "one": (1, {}),
    "shard 2": (2, {}),
    "recomputed": (1, {"training": {"activationCheckpointing": "full"}}),
    "tensor 2": (2, {"parameters": {"tensor_parallel_degree": 2}}),
    "expert 2": (2, {"parameters": {"expert_parallel_degree": 2}}),
    "prediction": (1, {"model": V3 | {"mtpLayers": 1}}),
}


@pytest.mark.drawn(2, of="padding in the balance of experts")
@pytest.mark.parametrize("objective", ["sft", "dpo"])
@pytest.mark.parametrize("layout", PADDED_LAYOUTS)
def test_a_row_with_padding_takes_the_steps_of_the_row_without(tmp_path: Path, layout: str, objective: str) -> None:
    ranks, changes = PADDED_LAYOUTS[layout]
    if objective == "dpo" and ({"parameters", "model"} & {*changes}):
        pytest.skip("preferences support neither parallelism nor prediction modules")
    length = 96
    prompt, answer = "What? ", "Words and more words of an answer, "
    lines: list[dict[str, Any]] = []
    for number in range(4):
        texts = [(prompt + f"{number}{side}" + answer * 9)[: length - 1] for side in "ab"]
        whole = {"chosen": texts[0].removeprefix(prompt), "rejected": texts[1].removeprefix(prompt)}
        lines.append({"prompt": prompt} | ({"completion": whole["chosen"]} if objective == "sft" else whole))
    shards = chat_data.tokenise(tmp_path, lines, Path("byte"))
    found = []
    # Less than a document, so that a row still has one.
    for padding in (0, 64):
        training = {"objective": objective, "sequenceLength": length + padding, "globalBatchSize": 4, "steps": 3}
        given = {"model": V3} | changes
        given["training"] = training | changes.get("training", {})
        job = trainer_job(**given, arguments=[*ALL, "--balance-loss-over", "sequence"])
        code, output = run_ranks(tmp_path / str(padding), ranks, job, {"train": shards})
        assert code == 0, output
        steps = events(output, "step")
        for step in steps:
            tokens = step["tokensPerSecondPerGpu"] * step["stepSeconds"] * ranks
            assert tokens == pytest.approx(4 * length * (2 if objective == "dpo" else 1), rel=0.05), step
        found.append([number for step in steps for number in (step["loss"], step["gradientNorm"], *step["expertLoad"])])
    assert found[0] == pytest.approx(found[1], rel=1e-5), layout


def plain_history(model: Any, shards: Path, job: dict[str, Any]) -> list[tuple[float, list[float]]]:
    """Loss and load of each step, as a loop of its own computes them from what routers say."""
    settings = resolve_settings(job, job["arguments"], {})
    heard: list[Any] = []
    routers = [module for module in model.modules() if isinstance(module, Router)]
    for router in routers:
        router.register_forward_hook(lambda _module, _given, logits: heard.append(logits))
    mixtures = [module for module in model.modules() if hasattr(module, "choice_bias")]
    matrices = [value for value in model.parameters() if value.dim() > 1]
    others = [value for value in model.parameters() if value.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8)
    batches = Batches(shards, settings.training, 257, 0, 1)
    found = []
    for step in range(settings.training.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings.training.steps, 0.01, 1, "cosine", 0.1, 0.2)
        optimizer.zero_grad()
        counts = [Counter() for _ in routers]
        losses = []
        for micro in range(batches.micro_steps):
            heard.clear()
            tokens, targets, *_none = batches.micro_batch(step, micro, torch.device("cpu"))
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            added = torch.zeros(())
            for logits, count, mixture in zip(heard, counts, mixtures, strict=True):
                chosen = chosen_experts(logits, mixture.routing, 2, mixture.choice_bias)[1]
                count.update(chosen.flatten().tolist())
                scores = logits.sigmoid() / logits.sigmoid().sum(-1, keepdim=True)
                fractions = torch.tensor([float((chosen == expert).sum()) for expert in range(4)]) * 4 / chosen.numel()
                added = added + 0.5 * (fractions * scores.mean(0)).sum() + 0.02 * logits.logsumexp(-1).pow(2).mean()
            ((loss + added) / batches.micro_steps).backward()
            losses.append(float(loss.detach()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        for count, mixture in zip(counts, mixtures, strict=True):
            mean = count.total() / 4
            mixture.choice_bias += torch.tensor([RATE * ((count[e] < mean) - (count[e] > mean)) for e in range(4)])
        found.append((sum(losses) / len(losses), [4 * max(count.values()) / count.total() for count in counts]))
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shards: Path) -> tuple[Path, list[tuple[float, list[float]]], Any]:
    """Weights, what a plain loop makes of them, and its last routing bias."""
    job = trainer_job(model=V3)
    folder, model = tmp_path_factory.mktemp("weights"), first_model(job)
    with torch.no_grad():
        for router in (module for module in model.modules() if isinstance(module, Router)):
            # Tokens of one mind would go to the same experts, and follow the bias all at once.
            router.weight *= 20
    publish(model, folder)
    history = plain_history(model, shards, job)
    (bias,) = (value for name, value in model.named_buffers() if name.endswith("choice_bias"))
    assert bias.abs().max() > 1.5 * RATE, f"the bias must move, got {bias}, {history}"
    return folder, history, bias


@pytest.mark.drawn(1, of="balance of experts")
@pytest.mark.parametrize("layout", ["one", *LAYOUTS])
def test_steps_loads_and_bias_are_those_of_a_plain_loop(tmp_path: Path, shards: Path, world: tuple, layout: str) -> None:
    weights, history, bias = world
    ranks, changes = LAYOUTS.get(layout, (1, {}))
    words = [*ALL, "--export-weights", *changes.get("arguments", [])]
    job = trainer_job(model=V3, weights="weights", **(changes | {"arguments": words}))
    code, output = run_ranks(tmp_path, ranks, job, {"train": shards, "weights": weights})
    assert code == 0, output
    steps = events(output, "step")
    assert [step["loss"] for step in steps] == pytest.approx([loss for loss, _loads in history], abs=1e-5)
    assert [step["expertLoad"] for step in steps] == [pytest.approx(loads, abs=1e-3) for _loss, loads in history]
    torch.testing.assert_close(SafetensorsFile(tmp_path / "model/model.safetensors").tensor(BIAS), bias, atol=1e-6, rtol=0)


@pytest.mark.drawn(1, of="balance of experts")
def test_a_run_continues_with_the_bias_that_it_had(tmp_path: Path, shards: Path, world: tuple) -> None:
    weights, history, _bias = world
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = trainer_job(model=V3, weights="weights", checkpoints=checkpoints, arguments=[*ALL, "--save-every-steps", "3"])
    channels = {"train": shards, "weights": weights}
    assert run_ranks(tmp_path / "first", 2, job, channels)[0] == 0
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    code, output = run_ranks(tmp_path / "second", 1, job, channels)
    assert code == 0, output
    assert [step["loss"] for step in events(output, "step")] == pytest.approx([loss for loss, _loads in history[3:]], abs=1e-5)


def test_nothing_is_added_and_no_bias_moves_unless_asked(tmp_path: Path, shards: Path, world: tuple) -> None:
    weights, history, _bias = world
    job = trainer_job(model=V3, weights="weights", arguments=["--export-weights"])
    code, output = run_ranks(tmp_path, 1, job, {"train": shards, "weights": weights})
    assert code == 0, output
    found = [step["loss"] for step in events(output, "step")]
    assert found[0] == pytest.approx(history[0][0], abs=1e-5)
    assert found[-1] != pytest.approx(history[-1][0], abs=1e-4)
    assert len(events(output, "step")[0]["expertLoad"]) == TRAINING.get("layers", 1), "loads are said anyway"
    files = [SafetensorsFile(folder / "model.safetensors").tensor(BIAS) for folder in (tmp_path / "model", weights)]
    assert torch.equal(*files)


def test_loads_of_routers_without_gradients_are_counted_too(tmp_path: Path, shards: Path, world: tuple) -> None:
    """Adapters behind the first router leave it without one; they begin as nothing, so that loads are those of the weights."""
    loads = {}
    for target, mode in (("o_proj", "none"), ("down_proj", "none"), ("down_proj", "full")):
        training = {"steps": 1, "activationCheckpointing": mode, "lora": {"rank": 2, "alpha": 4, "targets": [target]}}
        job = trainer_job(model=V3 | {"first_k_dense_replace": 0}, training=training)
        code, output = run_ranks(tmp_path / f"{target}-{mode}", 1, job, {"train": shards})
        assert code == 0, output
        loads[target, mode] = events(output, "step")[0]["expertLoad"]
    assert min(loads["o_proj", "none"]) >= 1
    assert loads["down_proj", "none"] == loads["down_proj", "full"] == loads["o_proj", "none"]


@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({"model": {}}, ["--balance-loss", "0.1"], "balance-loss: must be 0 for a model without experts"),
        ({"model": MODELS["qwen3_moe"]}, ["--routing-bias-rate", "0.1"], "routing-bias-rate: must be 0 for a model without routing.bias"),
        ({"parameters": {"context_parallel_degree": 2}}, ["--router-z-loss", "0.1"], "router-z-loss: must be 0 with context parallelism"),
        ({"parameters": {"compile": True}}, ["--balance-loss", "0.1"], "balance-loss: must be 0 with compile"),
        ({"library": "deepspeed"}, ["--balance-loss", "0.1"], "balance-loss: must be 0 with deepspeed, got 0.1; remove it"),
        ({}, ["--balance-loss", "-0.1"], "balance-loss: must be a number of at least 0, got -0.1"),
    ],
)
def test_fails_for_what_it_cannot_balance(changes: dict, words: list[str], message: str) -> None:
    job = trainer_job(**({"model": V3} | changes), arguments=words)
    with pytest.raises(InvalidRun, match=message):
        backend_name(resolve_settings(job, job["arguments"], {}), "2.15.0")
