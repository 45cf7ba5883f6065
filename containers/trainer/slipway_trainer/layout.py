"""The device mesh: which ranks replicate, shard, split sequences and split matrices."""

from dataclasses import dataclass

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from slipway_trainer.exits import Settings
from slipway_trainer.settings import Architecture, Parallel, Training


@dataclass(frozen=True)
class Layout:
    """Degrees that multiply to the number of ranks. Data parallelism is replicate x shard."""

    replicate: int
    shard: int
    context: int
    tensor: int
    #: Ranks that share one set of experts; they are among those of shard x context.
    expert: int = 1

    @property
    def data_ranks(self) -> int:
        """Ranks that see different samples."""
        return self.replicate * self.shard

    @property
    def ranks(self) -> int:
        return self.data_ranks * self.context * self.tensor

    def committed(self) -> dict[str, int]:
        """As COMMITTED.json names it."""
        return {"dpShard": self.shard, "dpReplicate": self.replicate, "tp": self.tensor, "pp": 1, "cp": self.context}


def resolve_layout(parallel: Parallel, ranks: int, shape: Architecture, training: Training) -> Layout:
    """The layout of `ranks` ranks. Raises Settings that prints every factor."""
    others = parallel.tensor * parallel.context
    shard = parallel.shard if parallel.shard is not None else ranks // (others * (parallel.replicate or 1))
    replicate = parallel.replicate if parallel.replicate is not None else ranks // (others * max(1, shard))
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
    if shape.attention_heads % layout.tensor or shape.kv_heads % layout.tensor or shape.ffn_hidden_size % layout.tensor:
        issues.append(
            f"tensor_parallel_degree: must divide {shape.attention_heads} heads, {shape.kv_heads} KV heads and ffnHiddenSize "
            f"{shape.ffn_hidden_size}, got {layout.tensor}"
        )
    if layout.expert > 1 and (shape.experts % layout.expert or layout.shard * layout.context % layout.expert):
        issues.append(
            f"expert_parallel_degree: must divide {shape.experts} experts and shard {layout.shard} x context {layout.context}, "
            f"got {layout.expert}"
        )
    if training.sequence_length % (2 * layout.context):
        issues.append(
            f"context_parallel_degree: twice the degree must divide sequenceLength {training.sequence_length}, got {layout.context}"
        )
    if issues:
        raise Settings(issues)
    return layout


def build_mesh(layout: Layout, device_type: str) -> DeviceMesh:
    """A mesh of replicate x (shard x context) x tensor, tensor innermost: its ranks talk most and sit on one host.

    FSDP shards over shard and context together, so they are one dimension here; within it neighbours share a sequence.
    """
    sizes = (layout.replicate, layout.shard * layout.context, layout.tensor)
    return init_device_mesh(device_type, sizes, mesh_dim_names=("replicate", "shard", "tensor"))


def context_ranks(layout: Layout) -> list[list[int]]:
    """Global ranks that share sequences, one list per group. Every rank must make every group."""
    groups = []
    for outer in range(layout.replicate * layout.shard):
        for inner in range(layout.tensor):
            first = outer * layout.context * layout.tensor + inner
            groups.append([first + number * layout.tensor for number in range(layout.context)])
    return groups


def data_rank(layout: Layout, rank: int) -> int:
    """Which of the data-parallel ranks a global rank is: the same for all that share a sequence or a matrix."""
    return rank // (layout.context * layout.tensor)
