"""Gradient norm and clipping over parameters that are sharded in different ways."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


def _mesh_key(parameter: nn.Parameter) -> int:
    return id(parameter.device_mesh) if isinstance(parameter, DTensor) else 0


@torch.no_grad()
def global_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """Euclidean norm of all gradients over all ranks.

    Grouped by device mesh: under tensor parallelism some parameters live on more dimensions than others, and one operation cannot mix
    them.
    """
    groups: dict[int, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            groups.setdefault(_mesh_key(parameter), []).append(parameter.grad)
    squares = []
    for grads in groups.values():
        norm = torch.nn.utils.get_total_norm(grads)
        squares.append((norm.full_tensor() if isinstance(norm, DTensor) else norm).float() ** 2)
    return torch.stack(squares).sum().sqrt()


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Scales all gradients so that their norm is at most `max_norm` (0: leaves them); returns the norm before."""
    held = [parameter for parameter in parameters if parameter.grad is not None]
    norm = global_norm(held)
    if max_norm > 0:
        scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
        for parameter in held:
            grad = parameter.grad
            (grad.to_local() if isinstance(grad, DTensor) else grad).mul_(scale)
    return norm
