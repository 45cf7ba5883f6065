"""Tensor parallelism: attention heads and the inner feed-forward size split over ranks; everything else stays whole.

Two all-reduces a layer and direction (Megatron-LM, arXiv 1909.08053). Embedding, norms and head are computed on every rank of the group.
"""

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def apply_tensor_parallel(block: nn.Module, mesh: DeviceMesh) -> None:
    """Splits one layer's matrices: the first of each pair by outputs, the second by inputs."""
    plan = {f"attention.{name}": ColwiseParallel() for name in ("q_proj", "k_proj", "v_proj")}
    plan |= {"attention.o_proj": RowwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel()}
    if getattr(block.mlp, "gate_proj", None) is not None:
        plan["mlp.gate_proj"] = ColwiseParallel()
    parallelize_module(block, mesh, plan)
