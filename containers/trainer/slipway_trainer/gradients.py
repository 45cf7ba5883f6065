"""Gradient norm and clipping for parameters with different shardings."""

from collections.abc import Iterable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor


def mesh_key(parameter: nn.Parameter) -> int:
    """A key that is equal for parameters on the same mesh, which one operation can process together."""
    return id(parameter.device_mesh) if isinstance(parameter, DTensor) else 0


@torch.no_grad()
def global_norm(parameters: Iterable[nn.Parameter], spread: Mapping[int, ProcessGroup]) -> Tensor:
    """The L2 norm of all gradients over all ranks.

    Parameters are grouped by device mesh, because one operation cannot mix meshes, which differ under tensor parallelism. `spread`: by
    mesh, a group whose ranks hold different parameters (experts), over which the squares are summed.
    """
    groups: dict[int, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            groups.setdefault(mesh_key(parameter), []).append(parameter.grad)
    squares = []
    for mesh, grads in groups.items():
        norm = torch.nn.utils.get_total_norm(grads)
        square = (norm.full_tensor() if isinstance(norm, DTensor) else norm).float() ** 2
        if mesh in spread:
            dist.all_reduce(square, group=spread[mesh])
        squares.append(square)
    return torch.stack(squares).sum().sqrt()


@torch.no_grad()
def clip_gradients(
    optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter], max_norm: float, spread: Mapping[int, ProcessGroup]
) -> Tensor:
    """Clips the norm of all gradients to `max_norm` (0: no clipping) in the next step of a fused optimizer; returns the norm before
    clipping."""
    norm = global_norm(parameters, spread)
    # The optimizer's kernel divides by it, as for gradient scalers, which saves a pass over the gradients.
    optimizer.grad_scale = torch.clamp((norm + 1e-6) / max_norm, min=1.0) if max_norm > 0 else None
    return norm
