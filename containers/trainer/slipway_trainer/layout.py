"""The parallel layout of the ranks: replication, sharding, context and tensor parallelism. Does not import PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway_trainer.exits import InvalidRun, Limit, refused
from slipway_trainer.settings import Architecture, Parallel, Training


@dataclass(frozen=True)
class Layout:
    """Parallelism degrees whose product is the number of ranks. The data-parallel degree is replicate x shard."""

    replicate: int
    shard: int
    context: int
    tensor: int
    #: Expert parallel degree; these ranks are a subset of the shard x context ranks.
    expert: int = 1

    @property
    def data_ranks(self) -> int:
        """Number of ranks that read different samples."""
        return self.replicate * self.shard

    @property
    def ranks(self) -> int:
        """Number of ranks of the layout."""
        return self.data_ranks * self.context * self.tensor

    def committed(self) -> dict[str, int]:
        """The layout as in COMMITTED.json."""
        return {"dpShard": self.shard, "dpReplicate": self.replicate, "tp": self.tensor, "pp": 1, "cp": self.context}


def resolve_layout(parallel: Parallel, ranks: int, shape: Architecture, training: Training) -> Layout:
    """The layout of `ranks` ranks. Raises InvalidRun with all factors if it is not possible.

    If one of `shard` and `replicate` is not given, it takes all ranks that the other degrees leave; if neither is given, the model is
    sharded over all of them. lib/core/distribution/fsdp.ts implements the same rule, and a test compares the two.
    """
    rest = ranks // (parallel.tensor * parallel.context)
    shard = parallel.shard if parallel.shard is not None else rest // (parallel.replicate or 1)
    replicate = parallel.replicate if parallel.replicate is not None else rest // max(1, shard)
    layout = Layout(replicate, shard, parallel.context, parallel.tensor, parallel.expert)
    uneven = min(shard, replicate) < 1 or layout.ranks != ranks
    issues = refused([_product(parallel, ranks)] if uneven else _limits(layout, shape, training))
    if issues:
        raise InvalidRun(*issues)
    return layout


def _product(parallel: Parallel, ranks: int) -> Limit:
    """The refusal of degrees whose product is not the number of ranks."""
    degrees = {
        "tensor_parallel": parallel.tensor,
        "context_parallel": parallel.context,
        "shard": parallel.shard or 1,
        "replicate": parallel.replicate or 1,
    }
    named = next((name for name, degree in degrees.items() if ranks % degree), "shard")
    must = f"divide the world size {ranks} together with the other degrees"
    found = " x ".join(f"{name} {degree}" for name, degree in zip(("TP", "CP", "shard", "replicate"), degrees.values(), strict=True))
    return True, f"distribution.parameters.{named}_degree", must, found, f"use degrees whose product is {ranks}"


def _limits(layout: Layout, shape: Architecture, training: Training) -> Iterator[Limit]:
    """What the degrees must divide. The checks before a launch say the same (lib/core/rules/model, lib/core/distribution/fsdp.ts)."""
    per_pass, length = training.micro_batch_size * layout.data_ranks, training.sequence_length
    must = f"be a multiple of microBatchSize {training.micro_batch_size} x {layout.data_ranks} data-parallel ranks = {per_pass}"
    batch = training.global_batch_size
    yield batch % per_pass != 0, "training.globalBatchSize", must, batch, "use a multiple"
    yield from _tensor_limits(layout, shape)
    split, path = layout.context * layout.tensor, "training.sequenceLength"
    must, fix = f"be a multiple of {split} (context x tensor_parallel_degree)", "use a multiple"
    yield layout.tensor > 1 and length % split != 0, path, must, length, fix
    must = f"be a multiple of {2 * layout.context} (2 x context_parallel_degree)"
    yield layout.context > 1 and length % (2 * layout.context) != 0, path, must, length, fix
    yield from _expert_limits(layout, shape)


def _tensor_limits(layout: Layout, shape: Architecture) -> Iterator[Limit]:
    tensor, path = layout.tensor, "distribution.parameters.tensor_parallel_degree"
    parts = ", ".join(shape.limits.get("unsplit", ()))
    must = f"be 1 for a model with {parts} in the built-in trainer"
    yield tensor > 1 and bool(parts), path, must, tensor, "remove it, and shard over more ranks"
    for name, heads in (("attention", shape.attention_heads), ("key/value", shape.kv_heads)):
        must = f"have a tensor degree that divides the {heads} {name} heads"
        yield heads % tensor != 0, "distribution.parameters", must, tensor, "use a divisor"
    for name, size in shape.limits.get("split", {}).items():
        yield size % tensor != 0, path, f"divide {name} {size}", tensor, "use a divisor"


def _expert_limits(layout: Layout, shape: Architecture) -> Iterator[Limit]:
    experts, degree, path = shape.experts, layout.expert, "distribution.parameters"
    if degree <= 1:
        return
    must = "have an expert degree of 1 for a model without experts"
    yield experts == 0, path, must, degree, "remove it"
    must = f"have an expert degree that divides the {experts} experts"
    yield experts % degree != 0, path, must, degree, "use a divisor"
    must = f"divide shard {layout.shard} x context {layout.context}"
    uneven = layout.shard * layout.context % degree != 0
    yield uneven, f"{path}.expert_parallel_degree", must, degree, "use a divisor"


def context_ranks(layout: Layout) -> list[list[int]]:
    """Global ranks that share sequences, one list per group. All ranks must create all groups."""
    first = [outer * layout.context * layout.tensor + inner for outer in range(layout.data_ranks) for inner in range(layout.tensor)]
    return [[rank + number * layout.tensor for number in range(layout.context)] for rank in first]


def data_rank(layout: Layout, rank: int) -> int:
    """The data-parallel rank of a global rank: equal for all ranks that share a sequence or split a matrix."""
    return rank // (layout.context * layout.tensor)
