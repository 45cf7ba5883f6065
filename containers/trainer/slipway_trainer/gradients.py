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
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float, spread: Mapping[int, ProcessGroup]) -> Tensor:
    """Scales all gradients so that their norm is at most `max_norm` (0: no clipping); returns the norm before clipping."""
    held = [parameter for parameter in parameters if parameter.grad is not None]
    norm = global_norm(held, spread)
    if max_norm > 0:
        scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
        grads = [parameter.grad for parameter in held]
        # With few kernels: one kernel per parameter took 3 % of a step on an H200.
        torch._foreach_mul_([grad.to_local() if isinstance(grad, DTensor) else grad for grad in grads], scale)
    return norm
