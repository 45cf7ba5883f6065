"""Tensor parallelism of a mixture of experts: each rank has a shard of the inner size of every expert, and all tokens of its group.

Within the mixture, ranks compute with plain tensors: the output of each rank is a summand of the result, and so are its gradients of
replicated tensors (tokens, router, gate of the shared expert). Communication takes place only at the input and the output.
"""

from types import MethodType

import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

from slipway_trainer.feed_forward import ExpertMixture, FeedForward
from slipway_trainer.sharding import distribute, own, own_bias


class SplitMixture(ParallelStyle):
    """Parallel style of an ExpertMixture. Inputs and outputs are sharded by position."""

    def __init__(self, positions: Placement) -> None:
        super().__init__()
        self._positions = positions

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        assert isinstance(module, ExpertMixture)
        for block in module.modules():
            if isinstance(block, FeedForward):
                _split_inner(block, device_mesh)
        distribute(module.router, device_mesh, Replicate())
        if module.shared_gate is not None:
            _split(module.shared_gate, device_mesh, Replicate())
        module.summands = device_mesh.size()
        module.register_forward_pre_hook(lambda _module, inputs: (self._gathered(inputs[0], device_mesh), *inputs[1:]))
        module.register_forward_hook(lambda _module, _inputs, out: self._scattered(out, device_mesh))
        return module

    def _gathered(self, x_BLD: Tensor, mesh: DeviceMesh) -> Tensor:
        spread = x_BLD if isinstance(x_BLD, DTensor) else DTensor.from_local(x_BLD, mesh, [self._positions])
        return spread.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])

    def _scattered(self, out_BLD: Tensor, mesh: DeviceMesh) -> Tensor:
        return DTensor.from_local(out_BLD, mesh, [Partial()]).redistribute(placements=[self._positions]).to_local()


def _split_inner(block: FeedForward, mesh: DeviceMesh) -> None:
    for layer in (block.gate_proj, block.up_proj):
        if layer is not None:
            _split(layer, mesh, Shard(0))
    _split(block.down_proj, mesh, Shard(1), bias=Replicate())
    # The output of each rank is a summand, so the bias must be added once in the sum.
    block.down_proj.bias_share = 1.0 / mesh.size()


def _split(layer: nn.Linear, mesh: DeviceMesh, placement: Placement, bias: Placement | None = None) -> None:
    """Distributes the layer's parameters and lets it compute with this rank's shards."""
    distribute(layer, mesh, placement, bias)
    layer.forward = MethodType(_own_product, layer)


def _own_product(layer: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, own(layer.weight), own_bias(layer))
