"""The parallel layout of the ranks: replication, sharding, context and tensor parallelism. Does not import PyTorch."""

from dataclasses import dataclass

from slipway_trainer.exits import Settings
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
    """The layout of `ranks` ranks. Raises Settings with all factors if it is not possible.

    If one of `shard` and `replicate` is not given, it takes all ranks that the other degrees leave; if neither is given, the model is
    sharded over all of them. lib/distribution/fsdp.ts implements the same rule, and a test compares the two.
    """
    rest = ranks // (parallel.tensor * parallel.context)
    shard = parallel.shard if parallel.shard is not None else rest // (parallel.replicate or 1)
    replicate = parallel.replicate if parallel.replicate is not None else rest // max(1, shard)
    layout = Layout(replicate, shard, parallel.context, parallel.tensor, parallel.expert)
    issues = []
    if min(shard, replicate) < 1 or layout.ranks != ranks:
        issues.append(
            f"distribution.parameters: replicate {layout.replicate} x shard {shard} x context {layout.context} x tensor "
            f"{layout.tensor} must be the {ranks} ranks of the job, got {layout.ranks}"
        )
    per_pass = training.micro_batch_size * max(1, layout.data_ranks)
    if training.global_batch_size % per_pass != 0:
        issues.append(
            f"training.globalBatchSize: must be a multiple of microBatchSize {training.micro_batch_size} x {layout.data_ranks} "
            f"data-parallel ranks = {per_pass}, got {training.global_batch_size}"
        )
    if layout.tensor > 1 and shape.unsplit_parts():
        issues.append(f"tensor_parallel_degree: must be 1 for a model with {', '.join(shape.unsplit_parts())}, got {layout.tensor}")
    sizes = [f"{name} {size}" for name, size in shape.split_sizes().items() if size % layout.tensor]
    if sizes:
        issues.append(f"tensor_parallel_degree: must divide {' and '.join(sizes)}, got {layout.tensor}")
    if training.sequence_length % (layout.context * layout.tensor):
        issues.append(
            f"tensor_parallel_degree: context {layout.context} x tensor {layout.tensor} must divide sequenceLength "
            f"{training.sequence_length}, because they shard its positions, got {layout.tensor}"
        )
    if layout.expert > 1 and shape.experts == 0:
        issues.append(f"expert_parallel_degree: must be 1 for a model without experts, got {layout.expert}")
    elif layout.expert > 1 and (shape.experts % layout.expert or layout.shard * layout.context % layout.expert):
        issues.append(
            f"expert_parallel_degree: must divide {shape.experts} experts and shard {layout.shard} x context {layout.context}, "
            f"got {layout.expert}"
        )
    if layout.context > 1 and training.sequence_length % (2 * layout.context):
        issues.append(
            f"context_parallel_degree: twice the degree must divide sequenceLength {training.sequence_length}, got {layout.context}"
        )
    if issues:
        raise Settings(issues)
    return layout


def context_ranks(layout: Layout) -> list[list[int]]:
    """Global ranks that share sequences, one list per group. All ranks must create all groups."""
    groups = []
    for outer in range(layout.replicate * layout.shard):
        for inner in range(layout.tensor):
            first = outer * layout.context * layout.tensor + inner
            groups.append([first + number * layout.tensor for number in range(layout.context)])
    return groups


def data_rank(layout: Layout, rank: int) -> int:
    """The data-parallel rank of a global rank: equal for all ranks that share a sequence or split a matrix."""
    return rank // (layout.context * layout.tensor)
