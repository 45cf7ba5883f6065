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
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

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
        "mlp": PrepareModuleInput(input_layouts=(_POSITIONS,), desired_input_layouts=(Replicate(),)),
        "mlp.up_proj": ColwiseParallel(),
        "mlp.down_proj": RowwiseParallel(output_layouts=_POSITIONS),
    }
    plan |= {f"attention.{name}": ColwiseParallel() for name in ("q_proj", "k_proj", "v_proj")}
    if getattr(block.mlp, "gate_proj", None) is not None:
        plan["mlp.gate_proj"] = ColwiseParallel()
    # Norms that a layer does not have are identities, which take the same inputs.
    plan |= {f"{name}_post_norm": SequenceParallel(use_local_output=True) for name in ("attention", "mlp")}
    # Each rank norms its own heads, by the same weights: as if heads were positions.
    plan |= {
        f"attention.{name}": SequenceParallel(sequence_dim=_HEADS, use_local_output=True)
        for name in ("q_norm", "k_norm")
        if any(True for _ in block.attention.get_submodule(name).parameters())
    } if block.attention.q_norm is not None else {}
    parallelize_module(block, mesh, plan)
    if block.attention.sinks is not None:
        block.attention.sinks = nn.Parameter(distribute_tensor(block.attention.sinks, mesh, [Shard(0)]))
