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
    others = parallel.replicate * parallel.tensor * parallel.context
    shard = parallel.shard if parallel.shard is not None else ranks // others
    layout = Layout(parallel.replicate, shard, parallel.context, parallel.tensor)
    issues = []
    if shard < 1 or layout.ranks != ranks:
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
    if issues:
        raise Settings(issues)
    return layout


def build_mesh(layout: Layout, device_type: str) -> DeviceMesh:
    """A mesh with all four dimensions, tensor innermost: its ranks talk most and sit on one host."""
    sizes = (layout.replicate, layout.shard, layout.context, layout.tensor)
    return init_device_mesh(device_type, sizes, mesh_dim_names=("replicate", "shard", "context", "tensor"))
