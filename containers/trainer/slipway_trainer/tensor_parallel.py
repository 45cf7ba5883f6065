"""Tensor parallelism with sequence parallelism: a group of ranks splits attention heads, the inner feed-forward size and the vocabulary;
between these, where every rank would compute the same, each has its part of the positions (Megatron-LM, arXiv 1909.08053 and 2205.05198).

Twice a layer the ranks gather their positions and scatter sums of them. The loss never has the logits of the whole vocabulary in one
place (vocabulary_loss.py).
"""

from dataclasses import dataclass

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from slipway_trainer.feed_forward import ExpertMixture
from slipway_trainer.sharding import distribute
from slipway_trainer.split_experts import SplitMixture

#: Projections whose results are heads, of which each rank makes its own.
_BY_HEADS = ("q_proj", "k_proj", "v_proj", "q_b_proj", "kv_b_proj")
#: What latent attention has before them, which all ranks compute: small matrices, and the norms of their results.
_COMPRESSED = ("q_a_proj", "q_a_layernorm", "kv_a_proj_with_mqa", "kv_a_layernorm")
#: Positions are the second dimension of hidden states.
_POSITIONS = Shard(1)
#: Heads are the third dimension of queries and keys where their norms stand.
_HEADS = 2


@dataclass(frozen=True)
class TensorParallel:
    """The ranks that split matrices, and which of them this is."""

    group: dist.ProcessGroup
    rank: int
    ranks: int


def tensor_parallel(mesh: DeviceMesh) -> TensorParallel | None:
    """This rank's part; None where matrices are whole. `mesh`: the dimension `tensor` of the layout's."""
    if mesh.size() == 1:
        return None
    return TensorParallel(mesh.get_group(), mesh.get_local_rank(), mesh.size())


def split_ends(model: nn.Module, mesh: DeviceMesh) -> None:
    """Splits what is not in a layer: embedding and head by words of the vocabulary, the last norm by positions."""
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=_POSITIONS),
        "norm": SequenceParallel(use_local_output=True),
        "head": ColwiseParallel(input_layouts=_POSITIONS, output_layouts=Replicate()),
    }
    is_tied = model.head.weight is model.embed.weight
    parallelize_module(model, mesh, plan)
    if is_tied:
        model.head.weight = model.embed.weight


def split_block(block: nn.Module, mesh: DeviceMesh) -> None:
    """Splits one layer's matrices, the first of each pair by outputs and the second by inputs, and its norms by positions."""
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
    """Of a module that all ranks have whole and that computes with DTensors: what follows it may be split."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        distribute(module, device_mesh, Replicate())
        return module


class _SplitNorm(ParallelStyle):
    """Of a norm over all heads, of which each rank has some: plain tensors in and out."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        distribute(module, device_mesh, Shard(0))
        module.across = device_mesh
        return module


def _other_norms(block: nn.Module) -> dict[str, ParallelStyle]:
    """How the norms are split that only some models have: behind attention and feed-forward block by positions, those of queries and keys
    by heads, as if heads were positions; one over all heads by its elements. Norms without weights need no plan."""
    behind = [f"{name}_post_norm" for name in ("attention", "mlp")]
    found = {name: SequenceParallel(use_local_output=True) for name in behind if _has_weights(getattr(block, name))}
    of_heads = [name for name in ("q_norm", "k_norm") if _has_weights(getattr(block.attention, name, None))]
    if getattr(block.attention, "norms_whole", False):
        return found | {f"attention.{name}": _SplitNorm() for name in of_heads}
    return found | {f"attention.{name}": SequenceParallel(sequence_dim=_HEADS, use_local_output=True) for name in of_heads}


def _has_weights(norm: nn.Module | None) -> bool:
    return norm is not None and next(norm.parameters(), None) is not None
