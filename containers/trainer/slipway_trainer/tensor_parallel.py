"""Tensor parallelism with sequence parallelism: a group of ranks shards attention heads, the inner size of MLPs and the vocabulary; norms
and residuals in between are sharded by position (Megatron-LM, arXiv 1909.08053 and 2205.05198).

Twice per layer, the ranks all-gather their positions and reduce-scatter sums. The logits of the whole vocabulary are never on one rank
(loss.py).
"""

from dataclasses import dataclass
from types import MethodType

import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from slipway_trainer.feed_forward import ExpertMixture, FeedForward
from slipway_trainer.sharding import distribute, own, own_bias


class SplitMixture(ParallelStyle):
    """Parallel style of an ExpertMixture: each rank has a shard of the inner size of every expert, and all tokens of its group. Inputs and
    outputs are sharded by position.

    Within the mixture, ranks compute with plain tensors: the output of each rank is a summand of the result, and so are its gradients of
    replicated tensors (tokens, router, gate of the shared expert). Communication takes place only at the input and the output.
    """

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


#: Projections that are sharded by head.
_BY_HEADS = ("q_proj", "k_proj", "v_proj", "q_b_proj", "kv_b_proj")
#: Latent attention: small projections before them and their norms, which are replicated.
_COMPRESSED = ("q_a_proj", "q_a_layernorm", "kv_a_proj_with_mqa", "kv_a_layernorm")
#: Dimension of the positions in hidden states.
_POSITIONS = Shard(1)
#: Dimension of the heads in queries and keys where their norms are applied.
_HEADS = 2


@dataclass(frozen=True)
class TensorParallel:
    """The group of ranks that shard matrices, and the index of this rank in it."""

    group: dist.ProcessGroup
    rank: int
    ranks: int


def tensor_parallel(mesh: DeviceMesh) -> TensorParallel | None:
    """The tensor parallelism of this rank; None if matrices are not sharded. `mesh`: dimension `tensor` of the layout's mesh."""
    if mesh.size() == 1:
        return None
    return TensorParallel(mesh.get_group(), mesh.get_local_rank(), mesh.size())


def split_model(model: nn.Module, mesh: DeviceMesh) -> None:
    """Shards the layers, embedding and head by vocabulary, and the last norm by position."""
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=_POSITIONS),
        "norm": SequenceParallel(use_local_output=True),
        "head": ColwiseParallel(input_layouts=_POSITIONS, output_layouts=Replicate()),
    }
    is_tied = model.head.weight is model.embed.weight
    parallelize_module(model, mesh, plan)
    if is_tied:
        model.head.weight = model.embed.weight
    for block in model.all_blocks():
        split_block(block, mesh)


def split_block(block: nn.Module, mesh: DeviceMesh) -> None:
    """Shards the matrices of one layer, the first of each pair by outputs and the second by inputs, and its norms by position."""
    plan = {
        "attention_norm": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=(_POSITIONS, None, None), desired_input_layouts=(Replicate(), None, None)),
        "attention.o_proj": RowwiseParallel(output_layouts=_POSITIONS),
        "mlp_norm": SequenceParallel(),
    }
    parts = dict(block.attention.named_children())
    plan |= {f"attention.{name}": ColwiseParallel() for name in _BY_HEADS if parts.get(name) is not None}
    plan |= {f"attention.{name}": _Whole() for name in _COMPRESSED if parts.get(name) is not None}
    plan |= _feed_forward_plan(block.mlp) | _other_norms(block)
    parallelize_module(block, mesh, plan)
    if block.attention.sinks is not None:
        block.attention.sinks = nn.Parameter(distribute_tensor(block.attention.sinks, mesh, [Shard(0)]))


def _feed_forward_plan(mlp: nn.Module) -> dict[str, ParallelStyle]:
    if isinstance(mlp, ExpertMixture):
        return {"mlp": SplitMixture(_POSITIONS)}
    plan = {
        "mlp": PrepareModuleInput(input_layouts=(_POSITIONS,), desired_input_layouts=(Replicate(),)),
        "mlp.up_proj": ColwiseParallel(),
        "mlp.down_proj": RowwiseParallel(output_layouts=_POSITIONS),
    }
    return plan | ({"mlp.gate_proj": ColwiseParallel()} if mlp.gate_proj is not None else {})


class _Whole(ParallelStyle):
    """Replicates a module that computes with DTensors, because the modules after it may be sharded."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        distribute(module, device_mesh, Replicate())
        return module


class _SplitNorm(ParallelStyle):
    """Shards a norm over all heads, with plain tensors as inputs and outputs."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        distribute(module, device_mesh, Shard(0))
        module.across = device_mesh
        return module


def _other_norms(block: nn.Module) -> dict[str, ParallelStyle]:
    """Parallel styles of the norms that only some models have: after attention and MLP by position, of queries and keys by head (as
    sequence parallelism in the head dimension), and over all heads by element. Norms without weights need no style."""
    behind = [f"{name}_post_norm" for name in ("attention", "mlp")]
    found = {name: SequenceParallel(use_local_output=True) for name in behind if _has_weights(getattr(block, name))}
    of_heads = [name for name in ("q_norm", "k_norm") if _has_weights(getattr(block.attention, name, None))]
    if getattr(block.attention, "norms_whole", False):
        return found | {f"attention.{name}": _SplitNorm() for name in of_heads}
    return found | {f"attention.{name}": SequenceParallel(sequence_dim=_HEADS, use_local_output=True) for name in of_heads}


def _has_weights(norm: nn.Module | None) -> bool:
    return norm is not None and next(norm.parameters(), None) is not None
