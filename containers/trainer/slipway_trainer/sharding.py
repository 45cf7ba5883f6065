"""Converts between full tensors and the shards of a rank."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, distribute_tensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset


def named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """All parameters and buffers that checkpoints and published weights contain. Buffers are replicated and not changed by the
    optimizer."""
    yield from model.named_parameters()
    yield from model.named_buffers()


def packed_layers(model: nn.Module) -> dict[str, Any]:
    """The linear layers whose `weight` has fewer bits per element than its values (nf4.py), by the name of the weight."""
    return {f"{name}.weight": module for name, module in model.named_modules() if hasattr(module, "unpacked")}


#: Returns the full tensor of a name and shape; None to keep the current values.
Values = Callable[[str, torch.Size], Tensor | None]


def fill_all(model: nn.Module, values: Values) -> None:
    """Sets this rank's shards of all parameters and buffers, one after the other."""
    layers = packed_layers(model)
    scales = {f"{name.removesuffix('weight')}scales" for name in layers}
    for name, tensor in named_tensors(model):
        layer = layers.get(name)
        shape = tensor.shape if layer is None else torch.Size((layer.out_features, layer.in_features))
        whole = None if name in scales else values(name, shape)
        if whole is None:
            continue
        if layer is not None:
            layer.pack(whole)
        else:
            fill(tensor, whole)


def local_slices(parameter: Tensor) -> tuple[slice, ...]:
    """The slices of the full tensor that this rank holds.

    PyTorch has no public function that respects the order in which FSDP and tensor parallelism shard the same dimension.
    """
    if not isinstance(parameter, DTensor):
        return tuple(slice(0, size) for size in parameter.shape)
    sizes, offsets = compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, parameter.placements)
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


@torch.no_grad()
def fill(parameter: Tensor, whole: Tensor) -> None:
    """Copies this rank's shard of `whole` to the parameter."""
    shard = local_part(parameter)
    if shard.numel():
        shard.copy_(whole[local_slices(parameter)])


def local_part(tensor: Tensor) -> Tensor:
    """This rank's shard, or the tensor if it is not sharded."""
    if isinstance(tensor, ShardedTensor):
        # Of FSDP1, with at most one shard on a rank.
        return next((shard.tensor for shard in tensor.local_shards()), torch.empty(0, dtype=tensor.dtype))
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def gathered(parameter: Tensor) -> Tensor:
    """The full tensor. All ranks that hold a shard must call it at the same time."""
    return parameter.full_tensor() if isinstance(parameter, DTensor) else parameter.detach()


def own(parameter: Tensor) -> Tensor:
    """The local tensor for modules that compute with plain tensors under tensor parallelism: the shard, or the full replicated tensor,
    whose gradients are summed over the ranks."""
    if not isinstance(parameter, DTensor):
        return parameter
    is_whole = all(placement.is_replicate() for placement in parameter.placements)
    return parameter.to_local(grad_placements=[Partial()] * parameter.device_mesh.ndim if is_whole else parameter.placements)


def is_linear(module: nn.Module) -> bool:
    """Whether a module computes `nn.Linear.forward`, whatever its class is: neither float8 nor an adapter, for example."""
    return type(module).forward is nn.Linear.forward


def stored_weight(layer: nn.Linear) -> nn.Parameter:
    """The weight of a layer as it is stored. Reading `weight` may cast it, see unsharded.py."""
    return next(layer.parameters())


def own_bias(layer: nn.Linear) -> Tensor | None:
    """The local bias of a layer; scaled if the layer's output is summed over ranks."""
    return None if layer.bias is None else own(layer.bias) * getattr(layer, "bias_share", 1.0)


def distribute(module: nn.Module, mesh: DeviceMesh, placement: Placement, bias: Placement | None = None) -> None:
    """Distributes the module's own parameters over the mesh; `bias`: placement of the bias, if different."""
    for name, parameter in list(module.named_parameters(recurse=False)):
        spread = distribute_tensor(parameter, mesh, [bias if bias is not None and name == "bias" else placement])
        module.register_parameter(name, nn.Parameter(spread, requires_grad=parameter.requires_grad))


def gathered_parts(part: Tensor, group: dist.ProcessGroup) -> Tensor:
    """All-gather: the shards of all ranks, stacked."""
    parts = part.new_empty((dist.get_world_size(group), *part.shape))
    dist.all_gather_into_tensor(parts.flatten(0, 1), part.contiguous(), group=group)
    return parts


def summed_part(parts: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Reduce-scatter: the sum over all ranks of this rank's shard. `parts`: this rank's summands of all shards, stacked."""
    own = parts.new_empty(parts.shape[1:])
    dist.reduce_scatter_tensor(own, parts.contiguous().flatten(0, 1), group=group)
    return own
