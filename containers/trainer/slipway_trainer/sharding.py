"""From whole tensors to the part that a rank holds, and back."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, distribute_tensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset


def named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """What checkpoints and published weights hold: parameters, and buffers, which every rank has whole and no optimizer changes."""
    yield from model.named_parameters()
    yield from model.named_buffers()


def local_slices(parameter: Tensor) -> tuple[slice, ...]:
    """Which part of the whole tensor this rank holds.

    torch has no public function for this that also knows the order in which FSDP and tensor parallelism cut the same dimension.
    """
    if not isinstance(parameter, DTensor):
        return tuple(slice(0, size) for size in parameter.shape)
    sizes, offsets = compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, parameter.placements)
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


@torch.no_grad()
def fill(parameter: Tensor, whole: Tensor) -> None:
    """Copies this rank's part of `whole` into the parameter."""
    local = parameter.to_local() if isinstance(parameter, DTensor) else parameter
    if local.numel():
        local.copy_(whole[local_slices(parameter)])


def gathered(parameter: Tensor) -> Tensor:
    """The whole tensor; every rank that holds a part must call this at the same time."""
    return parameter.full_tensor() if isinstance(parameter, DTensor) else parameter.detach()


def own(parameter: Tensor) -> Tensor:
    """What this rank computes with where tensor parallelism leaves plain tensors: its part, or the whole of what all ranks have, to whose
    gradients each adds a summand."""
    if not isinstance(parameter, DTensor):
        return parameter
    is_whole = all(placement.is_replicate() for placement in parameter.placements)
    return parameter.to_local(grad_placements=[Partial()] * parameter.device_mesh.ndim if is_whole else parameter.placements)


def own_bias(layer: nn.Linear) -> Tensor | None:
    """The same of a layer's bias; its share of it where the layer's result is one summand of several."""
    return None if layer.bias is None else own(layer.bias) * getattr(layer, "bias_share", 1.0)


def distribute(module: nn.Module, mesh: DeviceMesh, placement: Placement, bias: Placement | None = None) -> None:
    """Places the module's own parameters on the mesh; `bias`: the placement of its bias, where it is another one."""
    for name, parameter in list(module.named_parameters(recurse=False)):
        spread = distribute_tensor(parameter, mesh, [bias if bias is not None and name == "bias" else placement])
        module.register_parameter(name, nn.Parameter(spread, requires_grad=parameter.requires_grad))
