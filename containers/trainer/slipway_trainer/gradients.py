"""Gradient norm and clipping for parameters with different shardings."""

from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor


def mesh_key(parameter: nn.Parameter) -> DeviceMesh | None:
    """A key that is equal for parameters on the same mesh, which one operation can process together: caches of DTensor may have replaced
    the mesh of some by an equal one."""
    return parameter.device_mesh if isinstance(parameter, DTensor) else None


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _holders(gradient: Tensor) -> tuple[ProcessGroup, ...]:
    """The groups over which a gradient is sharded."""
    if not isinstance(gradient, DTensor):
        return ()
    mesh = gradient.device_mesh
    return tuple(mesh.get_group(dim) for dim, placement in enumerate(gradient.placements) if not placement.is_replicate())


@torch.no_grad()
def global_norm(parameters: Iterable[nn.Parameter], spread: Mapping[DeviceMesh | None, ProcessGroup]) -> Tensor:
    """The L2 norm of all gradients over all ranks.

    Computed from the shards of this rank, which are summed over the ranks that hold the others: operations on DTensors would take the host
    4 ms for the 291 parameters of an 8B model. `spread`: by mesh, a group whose ranks hold different parameters (experts), over which the
    squares are summed.
    """
    placed: dict[tuple[DeviceMesh | None, object], list[Tensor]] = {}
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            placements = gradient.placements if isinstance(gradient, DTensor) else ()
            placed.setdefault((mesh_key(parameter), placements), []).append(gradient)
    held: dict[tuple[ProcessGroup, ...], list[Tensor]] = {}
    for (mesh, _placements), gradients in placed.items():
        holders = (*_holders(gradients[0]), *([spread[mesh]] if mesh in spread else []))
        held.setdefault(holders, []).extend(map(_local, gradients))
    squares = [torch.nn.utils.get_total_norm(locals_).float() ** 2 for locals_ in held.values()]
    together = torch.stack(squares)
    for group in dict.fromkeys(group for holders in held for group in holders):
        if dist.get_world_size(group) > 1:
            _sum(together, [number for number, holders in enumerate(held) if group in holders], group)
    return together.sum().sqrt()


def _sum(values: Tensor, numbers: Sequence[int], group: ProcessGroup) -> None:
    """Sums the values with these numbers over the ranks of a group, in place."""
    if len(numbers) == len(values):
        dist.all_reduce(values, group=group)
        return
    chosen = torch.stack([values[number] for number in numbers])
    dist.all_reduce(chosen, group=group)
    for number, value in zip(numbers, chosen, strict=True):
        values[number] = value


@torch.no_grad()
def clip_gradients(optimizer: torch.optim.Optimizer, max_norm: float, spread: Mapping[DeviceMesh | None, ProcessGroup]) -> Tensor:
    """Clips the norm of all gradients of a fused optimizer to `max_norm` (0: no clipping) in its next step; returns the norm before
    clipping. `spread`: as in `global_norm`."""
    # Walking the modules for their parameters would take longer.
    norm = global_norm([parameter for group in optimizer.param_groups for parameter in group["params"]], spread)
    # The optimizer's kernel divides by it, as for gradient scalers, which saves a pass over the gradients.
    optimizer.grad_scale = torch.clamp((norm + 1e-6) / max_norm, min=1.0) if max_norm > 0 else None
    return norm
