"""Mixtures of channels: the proportions are those of the run file at every step, whatever the layout, and a run continues within one."""

import os
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_world import direct_checkpoints
from rank_world import events, losses_of, run_ranks, trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.batches import Batches  # noqa: E402
from slipway_trainer.continuation import Continuation  # noqa: E402
from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.mixture import Mixture, read_mixture  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
PHASES = [{"weights": {"web": 0.7, "code": 0.2, "math": 0.1}}, {"fromStep": 4, "weights": {"code": 1, "math": 3}}]
MIXED = {"mixture": PHASES, "steps": 8, "globalBatchSize": 10}


def drawn_phases(rng: random.Random) -> list[dict[str, Any]]:
    names = "abcde"[: rng.randint(1, 5)]
    starts = [0, *sorted(rng.sample(range(1, 40), rng.randint(0, 3)))]
    weights = lambda: {name: rng.choice([0.1, 0.25, 0.7, 1, 3, 0.001, 0.333]) for name in rng.sample(names, rng.randint(1, len(names)))}  # noqa: E731
    return [{"fromStep": start, "weights": weights()} for start in starts]


def test_drawn_mixtures_take_each_sample_of_a_channel_once_and_in_proportion() -> None:
    for case in range(200):
        rng = random.Random(SEED + case)
        phases, batch = drawn_phases(rng), rng.choice((1, 3, 8, 64))
        mixture = Mixture(read_mixture(phases, []), batch)
        seen: Counter[str] = Counter()
        within: Counter[str] = Counter()
        for step in range(60):
            assert mixture.drawn(step) == {name: seen[name] for name in mixture.channels}, f"seed {SEED}, case {case}, step {step}"
            phase = next(phase for phase in reversed(phases) if phase["fromStep"] <= step)
            if phase["fromStep"] == step:
                within.clear()
            for name, number in mixture.samples(step):
                assert number == seen[name], f"seed {SEED}, case {case}, step {step}"
                seen[name] += 1
                within[name] += 1
            total, taken = sum(phase["weights"].values()), within.total()
            for name, weight in phase["weights"].items():
                off = abs(within[name] - taken * weight / total)
                assert off <= 0.5 + 2.5 * weight / total + 1e-6, f"seed {SEED}, case {case}, step {step}: {name} {off}"


def test_proportions_are_exact_after_each_common_denominator() -> None:
    mixture = Mixture(read_mixture([PHASES[0]], []), 10)
    for step in range(1, 30):
        assert mixture.drawn(step) == {"web": 7 * step, "code": 2 * step, "math": step}
        assert Counter(name for name, _number in mixture.samples(step)) == {"web": 7, "code": 2, "math": 1}


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("mixture")
    sizes = {"web": 3000, "code": 500, "math": 900}
    return {name: write_shards(root / name, tokens, seed=number) for number, (name, tokens) in enumerate(sizes.items())}


def batches_of(channels: dict[str, Path], rank: int, ranks: int, micro: int) -> Batches:
    job = trainer_job(training=MIXED | {"microBatchSize": micro})
    return Batches(channels, resolve_settings(job, [], {}).training, 257, rank, ranks)


def test_a_step_has_the_same_samples_on_any_number_of_ranks(channels: dict[str, Path]) -> None:
    whole = batches_of(channels, 0, 1, 10)
    for ranks, micro in ((2, 5), (5, 1), (10, 1), (1, 2)):
        split = [batches_of(channels, rank, ranks, micro) for rank in range(ranks)]
        for step in (0, 3, 4, 7, 2):
            found = [number for micro_step in range(split[0].micro_steps) for part in split for number in part.numbers(step, micro_step)]
            assert found == whole.numbers(step, 0)


def test_a_channel_begins_anew_in_another_order_when_it_has_been_seen(channels: dict[str, Path]) -> None:
    batches = batches_of(channels, 0, 1, 10)
    taken = [number for step in range(40) for name, number in batches.numbers(step, 0) if name == "code"]
    count = len(set(taken))
    assert len(taken) > 2 * count, "too short to see it"
    first, second = taken[:count], taken[count : 2 * count]
    assert set(first) == set(second) and first != second
    assert batches.epoch(40) == max(int(times) for times in batches.epochs(40).values()) >= 2


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_a_run_continues_within_a_mixture_in_another_layout(tmp_path: Path, channels: dict[str, Path], first: int, second: int) -> None:
    whole = losses_of(tmp_path / "whole", 1, trainer_job(training=MIXED), channels)
    checkpoints = direct_checkpoints(tmp_path / "checkpoints", keep=5)
    job = trainer_job(training=MIXED, checkpoints=checkpoints, arguments=["--save-every-steps", "3"])
    assert losses_of(tmp_path / "first", first, job, channels) == pytest.approx(whole, abs=1e-5)
    for step in (6, 8):
        (tmp_path / f"checkpoints/step-{step}/COMMITTED.json").unlink()
    code, output = run_ranks(tmp_path / "second", second, job, channels)
    assert code == 0, output
    assert events(output, "resume")[0]["step"] == 3
    assert [event["loss"] for event in events(output, "step")] == pytest.approx(whole[3:], abs=1e-5)
    assert "mixture: epochs of each channel after step 8: web " in output
    other = [PHASES[0] | {"weights": {"web": 0.6, "code": 0.3, "math": 0.1}}, PHASES[1]]
    changed = trainer_job(training=MIXED | {"mixture": other, "steps": 9}, checkpoints=checkpoints)
    code, output = run_ranks(tmp_path / "other", 1, changed, channels)
    assert code == 77
    assert "training.mixture up to the checkpoint, in samples of each channel: must be that of the checkpoint" in output
    longer = [*PHASES, {"fromStep": 8, "weights": {"web": 1, "new": 1}}]
    later = trainer_job(training=MIXED | {"mixture": longer, "steps": 9}, checkpoints=checkpoints)
    more = channels | {"new": write_shards(tmp_path / "new", 3000, seed=9)}
    assert len(losses_of(tmp_path / "later", 1, later, more)) == 1, "what comes behind the checkpoint may change"


def test_a_checkpoint_of_other_data_is_not_taken(channels: dict[str, Path]) -> None:
    settings = resolve_settings(trainer_job(training=MIXED), [], {"SLIPWAY_RUN_ID": "one"})
    batches = Batches(channels, settings.training, settings.architecture.vocabulary_size, 0, 1)
    now = Continuation(settings, batches).facts(3) | {"runId": "one"}
    assert Continuation(settings, batches).take(now) == []
    for name, value in (("digest", "other"), ("samples", 1), ("drawn", {"web": 1})):
        with pytest.raises(InvalidRun, match="must be that of the checkpoint"):
            Continuation(settings, batches).take(now | {"data": now["data"] | {name: value}})


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        ([{"weights": {}}], r"mixture\[0\].weights: must have a number above 0 for each channel"),
        ([{"weights": {"a": 0}}], r"mixture\[0\].weights: must have a number above 0"),
        ([{"weights": {"a": True}}], r"mixture\[0\].weights: must have a number above 0"),
        ([{"fromStep": 5, "weights": {"a": 1}}], r"mixture\[0\].fromStep: must be 0 in the first phase"),
        ([{"weights": {"a": 1}}, {"fromStep": 0, "weights": {"a": 1}}], r"mixture\[1\].fromStep: must be 0 in the first phase and rise"),
    ],
)
def test_fails_for_mixtures_without_meaning(mixture: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidRun, match=message):
        resolve_settings(trainer_job(training={"mixture": mixture}), [], {})


def test_fails_for_a_channel_that_is_not_there(tmp_path: Path, channels: dict[str, Path]) -> None:
    code, output = run_ranks(tmp_path, 1, trainer_job(training=MIXED), {"web": channels["web"], "code": channels["code"]})
    assert code == 77
    assert "training.mixture: must name a channel of the run (code, web), got math" in output


@pytest.mark.parametrize(("bias", "activation"), [(False, None), (True, "clamped-swiglu")])
def test_all_experts_in_one_kernel_compute_what_they_compute_one_by_one(bias: bool, activation: str | None) -> None:
    """PyTorch computes grouped products on CPUs too. One expert is visited by nobody, and has gradients all the same."""
    from slipway_trainer import grouped
    from slipway_trainer.feed_forward import Experts, FeedForward

    torch.manual_seed(2)
    experts = Experts({str(number): FeedForward(32, 48, True, activation, bias) for number in range(5)}).to(torch.bfloat16)
    visits_H = torch.tensor([7, 0, 20, 1, 12])
    x_RD, gradient_RD = torch.randn(2, 40, 32, dtype=torch.bfloat16)
    found = []
    for visit in (experts, lambda rows_RD, visits_H: grouped.visit(rows_RD, list(experts.children()), visits_H)):
        rows_RD = x_RD.clone().requires_grad_()
        result_RD = visit(rows_RD, visits_H)
        result_RD.backward(gradient_RD)
        found.append([result_RD, rows_RD.grad, *(parameter.grad.clone() for parameter in experts.parameters())])
        experts.zero_grad()
    for alone, together in zip(*found, strict=True):
        assert torch.allclose(alone, together, atol=0.1 if bias else 1e-6, rtol=0.05 if bias else 0)


def test_experts_can_be_sharded_by_every_fsdp2() -> None:
    """Before PyTorch 2.12 it refuses lists and dictionaries of modules, also those with a forward of their own."""
    from slipway_trainer.feed_forward import Experts

    assert not issubclass(Experts, (torch.nn.ModuleDict, torch.nn.ModuleList))


def test_large_experts_are_not_put_side_by_side() -> None:
    from slipway_trainer.grouped import _suits

    assert _suits(2880, 2880) and _suits(2048, 768)
    assert not _suits(4096, 14336) and not _suits(2048, 100)


@pytest.mark.parametrize(
    ("capability", "rows", "suits"), [((9, 0), 4, True), ((9, 0), 0, False), ((8, 0), 4, False), ((10, 0), 4, False), ((10, 3), 4, False)]
)
@pytest.mark.skipif(not hasattr(torch.nn.functional, "grouped_mm"), reason="needs the grouped products of PyTorch 2.10")
def test_the_kernel_of_all_experts_is_for_rows_on_hopper(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], rows: int, suits: bool
) -> None:
    """On Blackwell experts that nobody visits get gradients, and without any row the backward pass fails."""
    from slipway_trainer import grouped
    from slipway_trainer.feed_forward import FeedForward

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    x_RD = SimpleNamespace(dtype=torch.bfloat16, is_cuda=True, device="cuda:0", size=lambda _: rows)
    assert grouped.suits(x_RD, [FeedForward(32, 48, True)]) is suits
