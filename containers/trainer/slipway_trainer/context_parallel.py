"""Context parallelism: each rank holds a part of every sequence and gathers keys and values for attention.

A sequence is split into 2 * ranks chunks; rank r holds chunks r and 2 * ranks - 1 - r, so that causal attention has the same cost on every
rank (the scheme of Llama 3, arXiv 2407.21783 section 3.3.2). Shape suffixes as in model.py; S is this rank's part of L, and P one of its
chunks.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from slipway_trainer.attend import attend
from slipway_trainer.layout import Layout, context_ranks
from slipway_trainer.sharding import gathered_parts, summed_part


class _Gather(torch.autograd.Function):
    """All-gather of shards, stacked in a new first dimension; the backward pass is a reduce-scatter of the gradients."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return gathered_parts(part, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return summed_part(gradient, ctx.group), None


def pieces_of(rank: int, ranks: int) -> tuple[int, int]:
    """Indices of the two chunks that a rank holds."""
    return rank, 2 * ranks - 1 - rank


def sequence_part(x_BL: Tensor, rank: int, ranks: int) -> Tensor:
    """The positions of a rank in a tensor whose second dimension is the sequence."""
    pieces = x_BL.chunk(2 * ranks, dim=1)
    first, second = pieces_of(rank, ranks)
    return torch.cat((pieces[first], pieces[second]), dim=1)


@dataclass(frozen=True)
class ContextParallel:
    """The group of ranks that share a sequence, and the index of this rank in it."""

    group: dist.ProcessGroup
    rank: int
    ranks: int

    def part(self, x_BL: Tensor) -> Tensor:
        """The positions of this rank in a tensor whose second dimension is the sequence."""
        return sequence_part(x_BL, self.rank, self.ranks)

    def positions(self, length: int, device: torch.device) -> Tensor:
        """The position indices of this rank, in its order, (S)."""
        return self.part(torch.arange(length, device=device).unsqueeze(0)).squeeze(0)

    def _whole(self, x_BKSE: Tensor) -> Tensor:
        """Keys or values of the whole sequence in order; gradients flow back to the ranks that hold them."""
        parts = _Gather.apply(x_BKSE, self.group)
        pieces = [piece for part in parts for piece in part.chunk(2, dim=2)]
        order = sorted(range(len(pieces)), key=lambda index: pieces_of(index // 2, self.ranks)[index % 2])
        return torch.cat([pieces[index] for index in order], dim=2)

    def attend(
        self,
        q_BHSE: Tensor,
        k_BKSE: Tensor,
        v_BKSE: Tensor,
        mask_SL: Tensor | None,
        scale: float,
        *,
        softcap: float | None = None,
        sinks_H: Tensor | None = None,
    ) -> Tensor:
        """Like attend.attend, with this rank's queries and the keys and values of the whole sequence. Sinks require a mask."""
        if mask_SL is None:
            return self._causal(q_BHSE, k_BKSE, v_BKSE, scale)
        return attend(q_BHSE, self._whole(k_BKSE), self._whole(v_BKSE), mask_SL, scale, softcap=softcap, sinks_H=sinks_H)

    def _causal(self, q_BHSE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, scale: float) -> Tensor:
        """Without a mask, each chunk attends to the keys up to its end, with a kernel that skips later keys."""
        # Imported here because it imports the compiler, which takes most of a second.
        from torch.nn.attention.bias import causal_lower_right

        k_BKLE, v_BKLE = self._whole(k_BKSE), self._whole(v_BKSE)
        size = q_BHSE.size(2) // 2
        mixed = []
        for q_BHPE, piece in zip(q_BHSE.chunk(2, dim=2), pieces_of(self.rank, self.ranks), strict=True):
            seen = (piece + 1) * size
            mask = causal_lower_right(size, seen)
            grouped = q_BHPE.size(1) != k_BKLE.size(1)
            keys_BKSE, values_BKSE = k_BKLE[:, :, :seen], v_BKLE[:, :, :seen]
            mixed.append(F.scaled_dot_product_attention(q_BHPE, keys_BKSE, values_BKSE, attn_mask=mask, scale=scale, enable_gqa=grouped))
        return torch.cat(mixed, dim=2)


def context_parallel(layout: Layout) -> ContextParallel | None:
    """The context parallelism of this rank; None if sequences are not split. All ranks must call this function, because it creates
    groups."""
    if layout.context == 1:
        return None
    group, _ = dist.new_subgroups_by_enumeration(context_ranks(layout), backend=dist.get_backend())
    return ContextParallel(group, dist.get_rank(group), layout.context)
