"""From whole tensors to the part that a rank holds, and back."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset


def local_slices(parameter: Tensor) -> tuple[slice, ...]:
    """Which part of the whole tensor this rank holds.

    torch has no public function for this that also knows the order in which FSDP and tensor parallelism cut the same dimension.
    """
    if not isinstance(parameter, DTensor):
        return tuple(slice(0, size) for size in parameter.shape)
    sizes, offsets = compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, parameter.placements)
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


@torch.no_grad()
def fill(parameter: nn.Parameter, whole: Tensor) -> None:
    """Copies this rank's part of `whole` into the parameter."""
    local = parameter.to_local() if isinstance(parameter, DTensor) else parameter
    if local.numel():
        local.copy_(whole[local_slices(parameter)])


@torch.no_grad()
def whole_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Every parameter in full, one at a time; every rank must walk through it at the same time."""
    for name, parameter in model.named_parameters():
        yield name, parameter.full_tensor() if isinstance(parameter, DTensor) else parameter.detach()
