"""Pure parts of the trainer: sample order, schedule, settings, layout, numbers."""

import re
from pathlib import Path
from typing import Any

import pytest
from described import described

from fake_world import TINY, job_json

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.layout import resolve_layout  # noqa: E402
from slipway_trainer.optimizer import learning_rate  # noqa: E402
from slipway_trainer.order import SampleOrder, positions_of_rank  # noqa: E402
from slipway_trainer.progress import flops_per_token, peak_tflops  # noqa: E402
from slipway_trainer.settings import Parallel, resolve_settings  # noqa: E402

TRAINING = {"sequenceLength": 64, "microBatchSize": 1, "globalBatchSize": 8, "steps": 10, "precision": "fp32", "seed": 7}


def settings(**changes):
    distribution = {"library": "fsdp", "collectives": "gloo", "parameters": {}}
    job = job_json(training=TRAINING, model=TINY, distribution=distribution) | changes
    return resolve_settings(job, job["arguments"], {})


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 65, 1000, 4097])
def test_an_epoch_is_a_permutation(count: int) -> None:
    order = SampleOrder(count, seed=3)
    first = [order.sample(position) for position in range(count)]
    second = [order.sample(position) for position in range(count, 2 * count)]
    assert sorted(first) == list(range(count)) == sorted(second)
    assert count < 7 or first != second != list(range(count))


def test_the_order_looks_random_and_depends_on_the_seed() -> None:
    orders = [[SampleOrder(10_000, seed).sample(position) for position in range(10_000)] for seed in (1, 2)]
    assert orders[0] != orders[1]
    # A shuffled order moves a sample by a third of the length on average.
    moved = sum(abs(sample - position) for position, sample in enumerate(orders[0])) / 10_000
    assert 0.30 < moved / 10_000 < 0.37
    assert sum(a + 1 == b for a, b in zip(orders[0], orders[0][1:], strict=False)) < 10


@pytest.mark.parametrize(("ranks", "micro_batch"), [(1, 1), (1, 8), (2, 2), (4, 1), (8, 1)])
def test_a_step_covers_the_same_samples_for_every_number_of_ranks(ranks: int, micro_batch: int) -> None:
    micro_steps = 8 // (ranks * micro_batch)
    seen = [
        position
        for rank in range(ranks)
        for micro_step in range(micro_steps)
        for position in positions_of_rank(5, micro_step, rank, ranks, micro_batch, 8)
    ]
    assert sorted(seen) == list(range(40, 48))


def test_schedules_warm_up_and_come_down() -> None:
    cosine = [learning_rate(step, 100, 1.0, 10, "cosine", 0.1, 0.2) for step in range(101)]
    assert cosine[0] == pytest.approx(0.1) and cosine[9] == 1.0 and cosine[100] == pytest.approx(0.1)
    assert cosine[55] == pytest.approx(0.55)
    wsd = [learning_rate(step, 100, 1.0, 10, "wsd", 0.1, 0.2) for step in range(101)]
    assert wsd[10:80] == [1.0] * 70 and wsd[89] == pytest.approx(0.55) and wsd[99] == pytest.approx(0.1)
    short = [learning_rate(step, 5, 1.0, 0, "wsd", 0.1, 0.2) for step in range(5)]
    assert short == pytest.approx([1.0] * 4 + [0.1]), "a short run decays too"
    assert learning_rate(99, 100, 1.0, 0, "constant", 0.1, 0.2) == 1.0


def test_total_tokens_become_steps_rounded_up() -> None:
    training = {key: value for key, value in TRAINING.items() if key != "steps"}
    assert settings(training=training | {"totalTokens": 512 * 10 + 1}).training.steps == 11


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(InvalidRun) as raised:
        settings(model=TINY | {"layers": 0, "kvHeads": 3}, training=TRAINING | {"globalBatchSize": None}, arguments=["--lerning-rate", "1"])
    for part in ("model.layers: must be", "model.kvHeads: must divide", "globalBatchSize: must be", "lerning-rate: must be"):
        assert part in str(raised.value)


def test_a_model_with_parts_that_the_launch_finds_untrained_is_refused() -> None:
    with pytest.raises(InvalidRun, match="must be a model whose parts the built-in trainer computes, got partialRotary"):
        settings(model=TINY | {"limits": {"untrained": ["partialRotary"]}})


def test_a_layout_that_does_not_fit_prints_every_factor() -> None:
    found = settings()
    with pytest.raises(InvalidRun, match="must divide the world size 4 together .*, got TP 1 x CP 1 x shard 1 x replicate 3"):
        resolve_layout(Parallel(replicate=3), 4, found.architecture, found.training)
    layout = resolve_layout(Parallel(replicate=2), 4, found.architecture, found.training)
    assert layout.committed() == {"dpShard": 2, "dpReplicate": 2, "tp": 1, "pp": 1, "cp": 1}


def test_the_flop_formula_gives_58_gigaflops_for_8b_at_8k() -> None:
    sizes = {"layers": 32, "hiddenSize": 4096, "attentionHeads": 32, "kvHeads": 8, "headSize": 128}
    llama = TINY | sizes | {"ffnHiddenSize": 14336, "vocabularySize": 128256}
    shape = settings(model=llama).architecture
    assert flops_per_token(shape, 8192) == pytest.approx(57.9e9, rel=0.002)


LATENT = {"qRank": 24, "kvRank": 20, "nopeHeadSize": 12, "ropeHeadSize": 8, "valueHeadSize": 10}
SHARED = {"experts": 4, "expertsPerToken": 2, "expertFfnHiddenSize": 40, "sharedExperts": 2, "denseLayers": 1}
COUNTED = {
    "dense": {"attentionHeads": 4, "kvHeads": 2},
    "wide heads and biases": {"headSize": 16, "attentionBias": True, "qkNorm": True},
    "shared experts": SHARED,
    "latent attention": {"latentAttention": LATENT},
    "latent attention, queries projected directly": SHARED | {"latentAttention": LATENT | {"qRank": None}},
    "chunks": {"family": {"modelType": "", "attentionChunk": {"size": 16, "layers": [0]}}},
}


@pytest.mark.parametrize("changes", COUNTED.values(), ids=COUNTED.keys())
def test_flops_count_each_matrix_that_a_token_meets_and_each_score_that_is_not_masked(changes: dict) -> None:
    import torch

    from slipway_trainer.masks import chunk_mask
    from slipway_trainer.model import Transformer

    shape, length = settings(model=described(TINY | changes)).architecture, 40
    model = Transformer(shape)
    left_out = ("embed.", "router", *(f".experts.{number}." for number in range(shape.experts_per_token, shape.experts)))
    matrices = sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if parameter.dim() == 2 and not any(part in name for part in left_out)
    )
    # A mask holds the diagonal in full, of which the formula counts half.
    chunk = shape.window.size if shape.window else length
    seen = [2 * int(chunk_mask(torch.arange(length), chunk if shape.has_window(layer) else length).sum()) for layer in range(shape.layers)]
    scores = sum(twice - length for twice in seen) / length
    head_sizes = shape.head_size + (shape.latent.value_head_size if shape.latent else shape.head_size)
    assert flops_per_token(shape, length) == pytest.approx(6 * matrices + 6 * shape.attention_heads * head_sizes * scores)


def test_no_mfu_for_a_device_whose_peak_is_unknown() -> None:
    assert peak_tflops("NVIDIA H100 80GB HBM3") == 989
    assert peak_tflops("cpu") is None


@pytest.mark.parametrize(
    ("device", "peak"),
    [("NVIDIA GB200", 2500), ("NVIDIA B200", 2250), ("NVIDIA H200", 989), ("NVIDIA A100-SXM4-80GB", 312), ("NVIDIA A10G", 70)],
)
def test_names_of_the_device_have_the_peak_of_the_catalog(device: str, peak: float) -> None:
    assert peak_tflops(device) == peak


def test_every_phase_that_the_trainer_announces_has_a_time_limit() -> None:
    import slipway_trainer
    from slipway_trainer.phase_seconds import PHASE_SECONDS

    sources = [path.read_text() for path in Path(slipway_trainer.__file__).parent.rglob("*.py")]
    calls = [call for source in sources for call in re.findall(r"world\.(?:announce|end)\(([^)]*)\)|_emit_phase\((\"[^)]*)\)", source)]
    assert {name for call in calls for name in re.findall(r'"([a-z-]+)"', "".join(call))} == set(PHASE_SECONDS)


def test_parameters_of_equal_meshes_are_summed_and_updated_together() -> None:
    # Caches of DTensor return the mesh of an earlier model in the same process, which is another object.
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate

    from slipway_trainer.optimizer import mesh_key, plain_adamw

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        earlier, mesh = (init_device_mesh("cpu", (1,), mesh_dim_names=("shard",)) for _ in range(2))

        def placed(size: int, on: DeviceMesh) -> torch.nn.Parameter:
            return torch.nn.Parameter(DTensor.from_local(torch.ones(size), on, [Replicate()]))

        placed(2, earlier)
        known, unknown = placed(2, mesh), placed(3, mesh)
        if known.device_mesh is unknown.device_mesh:
            pytest.skip("this version of PyTorch has no such cache")
        assert mesh_key(known) == mesh_key(unknown)
        shapes = {"known": (2,), "unknown": (3,)}
        assert len(plain_adamw([("known", known), ("unknown", unknown)], shapes, settings().arguments).param_groups) == 1
    finally:
        dist.destroy_process_group()


def test_timeouts_are_short_only_between_steady_steps() -> None:
    import torch.distributed as dist

    from slipway_trainer.timeouts import WARM_UP_STEPS, CollectiveTimeouts

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        saving = dist.new_group(backend="gloo")
        timeouts = CollectiveTimeouts(600.0, 150.0, {saving: None})
        for _ in range(WARM_UP_STEPS):
            timeouts.tighten(100.0)
        assert timeouts.seconds == 600.0, "the first steps compile"
        assert timeouts.stalled_seconds == 300.0
        timeouts.tighten(2.0)
        assert timeouts.seconds == 150.0
        assert timeout_of(dist.group.WORLD) == 150.0
        assert timeout_of(saving) > 150.0, "checkpoints are coordinated there"
        assert timeouts.stalled_seconds == 30.0
        timeouts.relax()
        assert timeout_of(dist.group.WORLD) == 600.0
        assert timeouts.stalled_seconds == 300.0, "evaluations and saves are slow"
        timeouts.tighten(20.0)
        assert timeouts.stalled_seconds == 60.0, "three slow steps"
        timeouts.tighten(60.0)
        assert timeouts.seconds == 300.0, "five slow steps"
        assert timeouts.stalled_seconds == 150.0, "half of it"
    finally:
        dist.destroy_process_group()


def test_a_run_that_is_done_does_not_wait_for_communicators_that_hang(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import threading

    from slipway_trainer import world

    released = threading.Event()
    monkeypatch.setattr(world.dist, "destroy_process_group", released.wait)
    monkeypatch.setattr(world, "CLOSE_SECONDS", 0.05)
    one = world.World.__new__(world.World)
    one.rank = 3
    one.close()
    released.set()
    assert "the communicators of rank 3 were not released" in capsys.readouterr().out


def timeout_of(group: object) -> float:
    import torch

    return group._get_backend(torch.device("cpu")).options._timeout.total_seconds()  # type: ignore[attr-defined]


@pytest.mark.parametrize("recipe", ["tensorwise", "rowwise"])
def test_a_float8_layer_gives_nearly_the_product_and_gradients_of_a_plain_one(recipe: str) -> None:
    from slipway_trainer.float8 import Float8Linear

    torch.manual_seed(0)
    layer = Float8Linear(64, 48, bias=False)
    layer.recipe = recipe
    x = torch.randn(2, 16, 64, requires_grad=True)
    plain = torch.nn.functional.linear(x, layer.weight)
    pull = torch.randn_like(plain)
    expected = torch.autograd.grad(plain, (x, layer.weight), pull)
    found = torch.autograd.grad(layer(x), (x, layer.weight), pull)
    for one, other in ((layer(x), plain), *zip(found, expected, strict=True)):
        assert 1e-4 < float(((one - other).norm() / other.norm()).detach()) < 0.06


def test_a_scale_for_each_row_keeps_small_rows_beside_a_large_one() -> None:
    from slipway_trainer.float8 import Float8Linear

    torch.manual_seed(0)
    layer = Float8Linear(64, 48, bias=False)
    x = torch.randn(16, 64) * 1e-5
    x[0] = 1e5
    plain = torch.nn.functional.linear(x, layer.weight)

    def error_of_small_rows(recipe: str) -> float:
        layer.recipe = recipe
        return float(((layer(x) - plain)[1:].norm() / plain[1:].norm()).detach())

    assert error_of_small_rows("tensorwise") > 0.5 > 0.06 > error_of_small_rows("rowwise")


def test_fails_for_scales_of_rows_that_the_kernels_do_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    from slipway_trainer.backend import require_float8

    def only_tensorwise(*operands: object, scale_a: torch.Tensor, **options: object) -> torch.Tensor:
        assert scale_a.dim() == 2
        raise RuntimeError("f8f8bf16_rowwise is sm_90 specific.")

    cpu = torch.device("cpu")
    require_float8("rowwise", cpu)
    monkeypatch.setattr(torch, "_scaled_mm", only_tensorwise)
    require_float8("tensorwise", cpu)
    require_float8(None, cpu)
    with pytest.raises(InvalidRun, match="fp8Recipe: must be tensorwise on cpu with PyTorch .*, got rowwise; use tensorwise, or an image"):
        require_float8("rowwise", cpu)
