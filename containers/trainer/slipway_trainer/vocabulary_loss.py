"""Cross entropy with a vocabulary that is sharded over ranks: each rank has only the logits of its part of the vocabulary, for one chunk of
the sequence at a time (Megatron-LM's vocabulary-parallel loss, arXiv 1909.08053 section 3, in chunks).

Shape suffixes as in loss.py; S positions and W vocabulary entries of a rank.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.sharding import gathered_parts, summed_part
from slipway_trainer.tensor_parallel import TensorParallel

#: A target without a loss.
IGNORED = -100
#: The same, relative to a rank's first vocabulary entry.
_NO_WORD = -(1 << 62)


@dataclass(frozen=True)
class _Piece:
    """The summed loss of one chunk, and the gradient of this rank's logits if requested."""

    total: Tensor
    to_logits_TW: Tensor | None


class VocabularyLoss(torch.autograd.Function):
    """The summed loss of a linear head that is sharded by vocabulary. Gradients are computed in the forward pass, while the logits
    exist."""

    @staticmethod
    def forward(
        ctx: Any, x_BSD: Tensor, weight_WD: Tensor, targets_BL: Tensor, words: int, tensor: TensorParallel, chunks: int, z_weight: float
    ) -> Tensor:
        wants_x, wants_weight = ctx.needs_input_grad[:2]
        x_BLD = gathered_positions(x_BSD, tensor)
        first = tensor.rank * -(-words // tensor.ranks)
        total = x_BLD.new_zeros((), dtype=torch.float32)
        to_x, to_weight_WD = [], torch.zeros_like(weight_WD) if wants_weight else None
        for x_BCD, targets_BC in zip(x_BLD.chunk(chunks, dim=1), targets_BL.chunk(chunks, dim=1), strict=True):
            x_TD = x_BCD.flatten(0, 1)
            words_T = torch.where(targets_BC == IGNORED, _NO_WORD, targets_BC - first).flatten()
            piece = _piece(F.linear(x_TD, weight_WD), words_T, tensor, z_weight, wants_x or wants_weight)
            total += piece.total
            if piece.to_logits_TW is not None:
                to_logits_TW = piece.to_logits_TW.to(weight_WD.dtype)
                to_x.append((to_logits_TW @ weight_WD).view_as(x_BCD))
                if to_weight_WD is not None:
                    to_weight_WD += to_logits_TW.t() @ x_TD
        # Summed over the vocabulary parts of all ranks, for the positions of this rank.
        to_x_BSD = scattered_positions(torch.cat(to_x, dim=1), tensor) if to_x else None
        ctx.save_for_backward(to_x_BSD, to_weight_WD)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if found is None else found * scale.to(found.dtype) for found in ctx.saved_tensors]
        return *scaled, None, None, None, None, None


def head_loss(head: nn.Module, x_BSD: Tensor, targets_BL: Tensor, tensor: TensorParallel, chunks: int, z_weight: float) -> Tensor:
    """The summed loss of a head whose matrix is sharded over the ranks."""
    words, weight_WD = head.weight.size(0), head.weight.to_local()
    return VocabularyLoss.apply(x_BSD, weight_WD, targets_BL, words, tensor, chunks, z_weight)


def _piece(logits_TW: Tensor, words_T: Tensor, tensor: TensorParallel, z_weight: float, wants_gradient: bool) -> _Piece:
    """`words_T`: targets relative to this rank's first vocabulary entry, or _NO_WORD."""
    logits_TW = logits_TW.float()
    peak_T = logits_TW.amax(dim=-1)
    dist.all_reduce(peak_T, op=dist.ReduceOp.MAX, group=tensor.group)
    shifted_TW = logits_TW - peak_T[:, None]
    is_here_T = (words_T >= 0) & (words_T < logits_TW.size(1))
    words_T1 = words_T.clamp(0, logits_TW.size(1) - 1)[:, None]
    picked_T = shifted_TW.gather(1, words_T1).squeeze(1).where(is_here_T, 0.0)
    probabilities_TW = shifted_TW.exp_()
    # One all-reduce for the denominators and for the logits of the targets, which only one rank has.
    both_2T = torch.stack((probabilities_TW.sum(dim=-1), picked_T))
    dist.all_reduce(both_2T, group=tensor.group)
    sums_T, targets_T = both_2T
    log_partition_T = sums_T.log() + peak_T
    counts_T = (words_T != _NO_WORD).float()
    total = ((sums_T.log() - targets_T + z_weight * log_partition_T.pow(2)) * counts_T).sum()
    if not wants_gradient:
        return _Piece(total, None)
    probabilities_TW.mul_(((1.0 + 2.0 * z_weight * log_partition_T) * counts_T / sums_T)[:, None])
    probabilities_TW.scatter_add_(1, words_T1, -is_here_T.float()[:, None])
    return _Piece(total, probabilities_TW)


def gathered_positions(x_BSD: Tensor, tensor: TensorParallel) -> Tensor:
    """All-gather of the positions, in order."""
    return gathered_parts(x_BSD, tensor.group).transpose(0, 1).flatten(1, 2)


def scattered_positions(x_BLD: Tensor, tensor: TensorParallel) -> Tensor:
    """Reduce-scatter: the sum over all ranks for this rank's positions."""
    return summed_part(torch.stack(x_BLD.chunk(tensor.ranks, dim=1)), tensor.group)
