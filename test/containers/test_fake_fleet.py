"""Every shipped run file of the built-in trainer, and other layouts of one on 32 to 1,024 GPUs, as one rank of the whole fleet: nothing is
sent and no memory is taken, but every collective is called. Their number and size are those that the planner counts.

Layers are cut to two, because what is sent of each is the same; widths, layout, precision and recomputation are the run's own.
test/core/planner/builtin-jobs.test.ts writes the fixture.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fake_world import REPOSITORY

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

import torch.distributed as dist  # noqa: E402
from faked_ranks import LiveTensors, Sent, Traffic, faked_world  # noqa: E402
from test_mixture_layouts import MODELS as MIXTURES  # noqa: E402
from test_split_families import MODELS as DENSE  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily  # noqa: E402
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.tensor import DTensor  # noqa: E402
from torch.nn.attention import bias  # noqa: E402

from rank_world import trainer_job  # noqa: E402
from slipway_trainer import fsdp2  # noqa: E402
from slipway_trainer.batches import MicroBatch  # noqa: E402
from slipway_trainer.fsdp1 import Fsdp1Backend  # noqa: E402
from slipway_trainer.layout import Layout, resolve_layout  # noqa: E402
from slipway_trainer.settings import RunSettings, resolve_settings  # noqa: E402

LAYERS = 2
JOBS = json.loads(Path(REPOSITORY, "test/fixtures/builtin-jobs.json").read_text())


def really(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose tensors have values: meshes are tables of ranks that are looked up."""

    def called(*arguments: Any, **options: Any) -> Any:
        with unset_fake_temporarily():
            return function(*arguments, **options)

    return called


@contextmanager
def fleet(settings: RunSettings, layout: Layout, ranks: int) -> Iterator[tuple[fsdp2.Fsdp2Backend, Traffic]]:
    """Rank 0 with its part of the model as tensors that have shapes and no memory."""
    with pytest.MonkeyPatch.context() as patch, faked_world(ranks) as traffic, ExitStack() as modes:
        for owner, name in ((DeviceMesh, "__init__"), (DeviceMesh, "__getitem__"), (fsdp2, "build_mesh"), (fsdp2, "expert_parallel")):
            patch.setattr(owner, name, really(getattr(owner, name)))
        patch.setattr(DeviceMesh, "_concatenate", staticmethod(really(DeviceMesh._concatenate)))
        # A mask of its own class cannot be made of tensors without values.
        patch.setattr(bias, "causal_lower_right", lambda rows, columns: torch.ones((rows, columns), dtype=torch.bool))
        # First values would be numbers that nobody reads.
        patch.setattr(fsdp2, "fill_all", lambda *_: None)
        modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        yield fsdp2.Fsdp2Backend(settings, layout, torch.device("cpu")), traffic


def one_step(job: dict[str, Any], ranks: int, micro_steps: int) -> tuple[Fsdp1Backend | fsdp2.Fsdp2Backend, Traffic]:
    """What rank 0 sends in one step of `micro_steps`."""
    settings, layout = settled(job, ranks, LAYERS)
    # How many tokens visit an expert is a number of the data, and FSDP1 needs storage: these models are small, and compute.
    world = computing_fleet if settings.architecture.experts or settings.arguments.backend == "fsdp1" else fleet
    with world(settings, layout, ranks) as (backend, traffic):
        traffic.clear()
        batch = micro_batch(settings)
        for number in range(micro_steps):
            backend.forward_backward(batch, 1.0 / micro_steps, last=number == micro_steps - 1)
        return backend, traffic


def settled(job: dict[str, Any], ranks: int, layers: int) -> tuple[RunSettings, Layout]:
    """The settings of a job whose model is cut to `layers`, not compiled."""
    job = job | {"model": job["model"] | {"layers": layers}}
    job["distribution"] = job["distribution"] | {"parameters": job["distribution"]["parameters"] | {"compile": False}}
    settings = resolve_settings(job, job["arguments"], {})
    if settings.training.quantization is not None:
        pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    return settings, resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)


def micro_batch(settings: RunSettings) -> MicroBatch:
    rows = settings.training.micro_batch_size * (2 if settings.training.objective == "dpo" else 1)
    tokens = torch.zeros((rows, settings.training.sequence_length + 1), dtype=torch.int64)
    return MicroBatch(tokens[:, :-1], tokens[:, 1:])


def live_after_forward(job: dict[str, Any], ranks: int, layers: int) -> int:
    """Bytes that a forward pass leaves in memory besides the rank's shards."""
    settings, layout = settled(job, ranks, layers)
    with fleet(settings, layout, ranks) as (backend, _traffic), LiveTensors() as live:
        shards = sum(parameter.to_local().nbytes for parameter in backend.model.parameters())
        loss = backend._objective(backend.model, micro_batch(settings))
        assert loss.requires_grad
        return live.bytes() - shards


@contextmanager
def computing_fleet(settings: RunSettings, layout: Layout, ranks: int) -> Iterator[tuple[Fsdp1Backend | fsdp2.Fsdp2Backend, Traffic]]:
    """Rank 0 with real tensors; every rank sends this one what it sends them."""
    exchange = dist.all_to_all_single

    def mirrored(received: torch.Tensor, sent: torch.Tensor, *arguments: Any, **options: Any) -> None:
        exchange(received, sent, *arguments, **options)
        received.copy_(sent)

    with pytest.MonkeyPatch.context() as patch, faked_world(ranks) as traffic:
        patch.setattr(dist, "all_to_all_single", mirrored)
        backend = Fsdp1Backend if settings.arguments.backend == "fsdp1" else fsdp2.Fsdp2Backend
        built = backend(settings, layout, torch.device("cpu"))
        built.begin()
        yield built, traffic


def planned_counts(entry: dict[str, Any], micro_steps: int, done: int) -> dict[str, int]:
    """The planner's counts of a layer's collectives in `done` of a step's micro-steps."""
    return {name: entry["traffic"][name] * done // micro_steps for name in ("gathers", "forwardGathers", "scatters")}


def has_adapters(entry: dict[str, Any]) -> bool:
    """Whether only adapters are trained, so that the ends of the model have no gradients."""
    return bool(entry["job"]["training"].get("lora"))


def element_bytes(entry: dict[str, Any]) -> int:
    return 4 if entry["job"]["training"].get("precision") == "fp32" else 2


def packed_parameters(entry: dict[str, Any]) -> float:
    """Parameters of a layer that have 4 bits and their share of a scale, by the bytes that the planner counts for it."""
    planned, bytes_of = entry["traffic"], element_bytes(entry)
    adapters = planned["trained"] if has_adapters(entry) else 0
    return (bytes_of * (planned["parameters"] + adapters) - planned["gatheredBytes"]) / (bytes_of - 0.5625)


def adapters_elsewhere(entry: dict[str, Any], layout: Layout) -> float:
    """Parameters of the adapters of those experts."""
    model, lora = entry["job"]["model"], entry["job"]["training"]["lora"]
    adapted = len({"gate_proj", "up_proj", "down_proj"} & {*lora["targets"]})
    sizes = model["hiddenSize"] + model["ffnHiddenSize"]
    return lora["rank"] * adapted * sizes * model.get("experts", 0) * (1 - 1 / layout.expert)


def elsewhere(entry: dict[str, Any], layout: Layout) -> float:
    """Parameters of a layer's experts on the other ranks of an expert-parallel group."""
    model = entry["job"]["model"]
    return 3 * model["hiddenSize"] * model["ffnHiddenSize"] * model.get("experts", 0) * (1 - 1 / layout.expert)


def expected_counts(entry: dict[str, Any], layout: Layout, micro_steps: int, done: int) -> Counter[tuple[str, int]]:
    """(kind, ranks of the group) of every collective in `done` micro-steps: the planner's for the layers, and what the ends of the model
    add. Embedding, last norm and head are one group that stays gathered until the backward pass is over."""
    activations, counts = entry["activations"], Counter[tuple[str, int]]()
    planned = planned_counts(entry, micro_steps, done)
    shards, is_mixture = layout.shard * layout.context, layout.expert > 1
    gathers, scatters = planned["gathers"], planned["scatters"]
    counts["all_gather", shards] += gathers * LAYERS + planned["forwardGathers"]
    counts["reduce_scatter", shards] += scatters * (LAYERS + (not has_adapters(entry)))
    counts["all_reduce", layout.replicate] += entry["traffic"]["replicaSums"] * (LAYERS + 1 + (LAYERS if is_mixture else 0))
    if is_mixture:
        # A layer's experts are sharded over the ranks that hold the same ones.
        counts["all_gather", shards // layout.expert] += gathers * LAYERS
        counts["reduce_scatter", shards // layout.expert] += scatters * LAYERS
        visits = activations["expert"]["exchanges"]
        # Before rows travel, ranks tell each other how many.
        counts["all_to_all", layout.expert] += done * LAYERS * (visits + visits // 2 - 1)
    if layout.tensor > 1:
        # The head gathers positions for the loss and the embedding scatters its sums; backward the other way round.
        counts["all_gather", layout.tensor] += done * (LAYERS * activations["tensor"]["gathers"] + 2)
        counts["reduce_scatter", layout.tensor] += done * (LAYERS * activations["tensor"]["scatters"] + 2)
        # Gradients of norms, and two sums for each piece of the loss.
        counts["all_reduce", layout.tensor] += scatters * (2 * LAYERS + 1) + 2 * done
    counts["all_gather", layout.context] += done * LAYERS * activations["context"]["gathers"]
    counts["reduce_scatter", layout.context] += done * LAYERS * activations["context"]["scatters"]
    return Counter({key: count for key, count in counts.items() if key[1] > 1 and count > 0})


def check_activations(entry: dict[str, Any], layout: Layout, sent: list[Sent], done: int) -> None:
    """Hidden states, keys and values, and visits of experts have the size that the planner says, and as often."""
    kinds = {"gathers": "all_gather", "scatters": "reduce_scatter", "exchanges": "all_to_all"}
    for name, counted in entry["activations"].items():
        group = getattr(layout, name)
        of_size = [one.kind for one in sent if one.bytes == counted["bytes"] and one.ranks == group]
        ends = 2 if name == "tensor" and group > 1 else 0
        for each in counted.keys() & kinds.keys():
            assert of_size.count(kinds[each]) == done * (LAYERS * counted[each] + ends), (name, each)


def check_parameters(entry: dict[str, Any], layout: Layout, sent: list[Sent], micro_steps: int, done: int) -> float:
    """Gathered parameters and scattered gradients have the planner's bytes; returns the parameters of the cut model on one tensor rank."""
    planned, model, shards = entry["traffic"], entry["job"]["model"], layout.shard * layout.context
    ends = model["vocabularySize"] * model["hiddenSize"] * (1 if model["tiedEmbeddings"] else 2) / layout.tensor
    others = {entry["activations"][name]["bytes"] for name in ("tensor", "context")}
    of_parameters = [one for one in sent if one.ranks in (shards, shards // layout.expert) and one.bytes not in others]
    gathered = sum(one.bytes for one in of_parameters if one.kind == "all_gather")
    scattered = sum(one.bytes for one in of_parameters if one.kind == "reduce_scatter")
    counts = planned_counts(entry, micro_steps, done)
    # The planner leaves out norms, and the rows that make shards equal.
    of_ends = element_bytes(entry) * ends
    assert gathered == pytest.approx(counts["gathers"] * planned["gatheredBytes"] * LAYERS + counts["forwardGathers"] * of_ends, rel=0.03)
    in_float32 = 4 * (planned["trained"] * LAYERS + (0 if has_adapters(entry) else ends))
    assert scattered == pytest.approx(counts["scatters"] * in_float32, rel=0.03), "gradients are summed in float32"
    return LAYERS * (planned["parameters"] + elsewhere(entry, layout)) + ends


@pytest.mark.drawn(2)
@pytest.mark.parametrize("entry", [job for job in JOBS if job["ranks"] > 8], ids=lambda entry: entry["file"])
def test_collectives_of_a_step_are_those_that_the_planner_counts(entry: dict[str, Any]) -> None:
    training = entry["job"]["training"]
    settings = resolve_settings(entry["job"], [], {})
    layout = resolve_layout(settings.parallel, entry["ranks"], settings.architecture, settings.training)
    micro_steps = training["globalBatchSize"] // (training.get("microBatchSize", 1) * layout.data_ranks)
    done = min(2, micro_steps)
    backend, traffic = one_step(entry["job"], entry["ranks"], done)
    sent = [one for one in traffic.sent if one.ranks > 1]
    assert Counter((one.kind, one.ranks) for one in sent) == expected_counts(entry, layout, micro_steps, done)
    check_activations(entry, layout, sent, done)
    parameters = check_parameters(entry, layout, sent, micro_steps, done)
    held = sum((parameter.to_local() if isinstance(parameter, DTensor) else parameter).nbytes for parameter in backend.model.parameters())
    packed = packed_parameters(entry) + elsewhere(entry, layout) if settings.training.quantization else 0
    adapters = entry["traffic"]["trained"] + adapters_elsewhere(entry, layout) if has_adapters(entry) else 0
    expected = 4 * (parameters + LAYERS * (adapters - packed)) + 0.5625 * LAYERS * packed
    assert held == pytest.approx(expected / (layout.shard * layout.context), rel=0.03), "each rank holds its share"


MEMORY = [
    *("nothing recomputed", "selective", "fp32, nothing recomputed", "fp32, selective, tensor 4", "kept until backward"),
    *("tensor 4, nothing recomputed", "tensor 8, selective", "tensor 8, full, replicated", "context 8, nothing recomputed"),
    *("two layers recomputed at once", "selective, adapters", "selective, adapters, tensor 4", "selective, adapters on 4 bits"),
]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("entry", [job for job in JOBS if job["file"] in MEMORY], ids=lambda entry: entry["file"])
def test_a_layer_keeps_what_the_planner_counts(entry: dict[str, Any]) -> None:
    kept = [live_after_forward(entry["job"], entry["ranks"], layers) for layers in (1, 3)]
    of_layer = (kept[1] - kept[0]) / 2
    if entry["file"].startswith("kept"):
        of_layer -= entry["traffic"]["gatheredBytes"]
    recomputed = entry["job"]["training"]["activationCheckpointing"]
    assert of_layer == pytest.approx(entry["kept"], rel=0.1 if recomputed == "none" else 0.02)


PREFERENCES = [job for job in JOBS if job["job"]["training"].get("objective") == "dpo"]


@pytest.mark.parametrize("entry", PREFERENCES, ids=lambda entry: entry["file"])
def test_a_reference_gathers_each_layer_once_more_and_its_ends_once(entry: dict[str, Any]) -> None:
    planned, micro_steps = entry["traffic"], 2
    a_step = entry["job"]["training"]["globalBatchSize"] // entry["ranks"]
    _backend, traffic = one_step(entry["job"], entry["ranks"], micro_steps)
    of_layers = (planned["gathers"] + planned["referenceGathers"]) // a_step * LAYERS
    # The ends of the model that trains are gathered for each pass; those of its frozen copy stay gathered.
    assert traffic.count("all_gather") == micro_steps * (of_layers + 1) + (not has_adapters(entry))
    assert traffic.count("reduce_scatter") == micro_steps * (LAYERS + (not has_adapters(entry))), "a reference has no gradients"


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("recomputed", "gathers", "scatters"), [("none", 4, 4), ("selective", 6, 4), ("full", 6, 5)])
@pytest.mark.parametrize("name", ["latent", "qwen3_moe", "gpt_oss", "deepseek_v3", "olmo2", "gemma2"])
def test_split_attention_and_experts_gather_and_scatter_as_often_as_dense_layers(
    name: str, recomputed: str, gathers: int, scatters: int
) -> None:
    """The counts are those of `tensorTraffic` (lib/core/planner/time/network.ts); gradients of what all ranks have add sums."""
    shape = (DENSE | MIXTURES)[name]
    # A norm behind the block's last scatter needs its result.
    scatters += recomputed == "full" and "normPlacement" in shape
    training = {"microBatchSize": 2, "activationCheckpointing": recomputed}
    job = trainer_job(model=shape, parameters={"tensor_parallel_degree": 2}, training=training)
    backend, traffic = one_step(job, 2, 1)
    hidden = 2 * job["training"]["sequenceLength"] * job["model"]["hiddenSize"] * 4
    found = Counter(one.kind for one in traffic.sent if one.ranks == 2 and one.bytes == hidden)
    assert found == {"all_gather": LAYERS * gathers + 2, "reduce_scatter": LAYERS * scatters + 2}
    assert {one.kind for one in traffic.sent if one.ranks == 2} == {"all_gather", "reduce_scatter", "all_reduce"}
