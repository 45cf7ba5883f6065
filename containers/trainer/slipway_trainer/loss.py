"""Cross entropy in chunks: the logits of a micro-batch (length x vocabulary, float32) are often the largest tensor of a step.

Where the vocabulary is sharded, each rank has only the logits of its part of it (Megatron-LM's vocabulary-parallel loss, arXiv 1909.08053
section 3, in chunks).

Shape suffixes as in model.py; C positions of one chunk, T = B * C; S positions and W vocabulary entries of a rank.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from slipway_trainer.arguments import LOGITS_OF_CHUNK
from slipway_trainer.sharding import gathered_parts, is_linear, stored_weight, summed_part
from slipway_trainer.tensor_parallel import TensorParallel

#: A target without a loss.
IGNORED = -100
#: The same, relative to a rank's first vocabulary entry.
_NO_WORD = -(1 << 62)


def chunks_for(requested: int, tokens: int, vocabulary_size: int) -> int:
    """The number of chunks of a sequence."""
    if requested > 0:
        return requested
    return max(1, -(-tokens * vocabulary_size // LOGITS_OF_CHUNK))


def _summed(logits_TV: Tensor, targets_T: Tensor, z_weight: float) -> Tensor:
    """Summed loss in float32 over all targets that are not IGNORED."""
    logits_TV = logits_TV.float()
    total = F.cross_entropy(logits_TV, targets_T, ignore_index=IGNORED, reduction="sum")
    if z_weight:
        squares_T = torch.logsumexp(logits_TV, dim=-1).pow(2)
        total = total + z_weight * torch.where(targets_T != IGNORED, squares_T, 0.0).sum()
    return total


@cache
def _summing(compiled: bool) -> Callable[[Tensor, Tensor, float], Tensor]:
    """`_summed`; compiled, its passes over the logits are fused into one."""
    return torch.compile(_summed) if compiled else _summed


def _piece(head: nn.Module, x_BCD: Tensor, targets_BC: Tensor, z_weight: float, compiled: bool) -> Tensor:
    return _summing(compiled)(head(x_BCD).flatten(0, 1), targets_BC.flatten(), z_weight)


class _InPieces(torch.autograd.Function):
    """The summed loss of a linear head in chunks. Gradients are computed in the forward pass while the logits of a chunk exist, because the
    backward pass would have to recompute them."""

    @staticmethod
    def forward(ctx: Any, x_BLD: Tensor, weight_VD: Tensor, targets_BL: Tensor, chunks: int, z_weight: float, compiled: bool) -> Tensor:
        total = x_BLD.new_zeros((), dtype=torch.float32)
        to_x, to_weight_VD = [], None
        for x_BCD, targets_BC in zip(x_BLD.chunk(chunks, dim=1), targets_BL.chunk(chunks, dim=1), strict=True):
            logits_TV = F.linear(x_BCD, weight_VD).flatten(0, 1).requires_grad_()
            with torch.enable_grad():
                piece = _summing(compiled)(logits_TV, targets_BC.flatten(), z_weight)
            (to_logits_TV,) = torch.autograd.grad(piece, logits_TV)
            to_x.append((to_logits_TV @ weight_VD).view_as(x_BCD))
            # The matrix product adds to the gradients of earlier chunks; a separate sum would take another pass over them.
            parts = to_logits_TV.t(), x_BCD.flatten(0, 1).to(to_logits_TV.dtype)
            to_weight_VD = torch.mm(*parts) if to_weight_VD is None else to_weight_VD.addmm_(*parts)
            total += piece.detach()
        ctx.save_for_backward(torch.cat(to_x, dim=1), to_weight_VD)
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        to_x_BLD, to_weight_VD = ctx.saved_tensors
        return to_x_BLD * scale.to(to_x_BLD.dtype), to_weight_VD * scale.to(to_weight_VD.dtype), None, None, None, None


def loss_over(
    targets_BL: Tensor,
    chunks: int,
    z_weight: float,
    compiled: bool = False,
    tensor: TensorParallel | None = None,
    divisor: float | None = None,
) -> Callable[[nn.Module, Tensor], Tensor]:
    """A loss function for Transformer.forward: the sum over all targets that are not IGNORED, computed in chunks and divided by `divisor`
    (default: the number of targets). `tensor`: the ranks that shard the head's vocabulary; then the hidden states are those of this rank's
    positions, and the targets those of all positions."""
    divisor = targets_BL.numel() if divisor is None else divisor

    def loss(head: nn.Module, x_BLD: Tensor) -> Tensor:
        if tensor is not None and is_linear(head):
            return head_loss(head, x_BLD, targets_BL, tensor, chunks, z_weight) / divisor
        # A head with an adapter gathers all positions itself.
        if chunks == 1 or tensor is not None:
            return _piece(head, x_BLD, targets_BL, z_weight, compiled) / divisor
        weight = stored_weight(head)
        # Outside its forward pass, the weight of a head cannot be read with ZeRO-3.
        is_plain = is_linear(head) and weight.requires_grad and not hasattr(weight, "ds_id")
        if torch.is_grad_enabled() and is_plain:
            return _InPieces.apply(x_BLD, head.weight, targets_BL, chunks, z_weight, compiled) / divisor
        total = x_BLD.new_zeros((), dtype=torch.float32)
        for x_BCD, targets_BC in zip(x_BLD.chunk(chunks, dim=1), targets_BL.chunk(chunks, dim=1), strict=True):
            total = total + checkpoint(_piece, head, x_BCD, targets_BC, z_weight, compiled, use_reentrant=False)
        return total / divisor

    return loss


def _row_sums(head: nn.Module, x_BCD: Tensor, targets_BC: Tensor) -> Tensor:
    losses_T = F.cross_entropy(head(x_BCD).flatten(0, 1).float(), targets_BC.flatten(), ignore_index=IGNORED, reduction="none")
    return -losses_T.view_as(targets_BC).sum(dim=1)


def log_probabilities(targets_BL: Tensor, chunks: int) -> Callable[[nn.Module, Tensor], Tensor]:
    """A function for Transformer.forward that returns the summed log-probability of each row's targets (B), computed in chunks in
    float32."""

    def sums(head: nn.Module, x_BLD: Tensor) -> Tensor:
        if chunks == 1:
            return _row_sums(head, x_BLD, targets_BL)
        total_B = x_BLD.new_zeros(x_BLD.size(0), dtype=torch.float32)
        for x_BCD, targets_BC in zip(x_BLD.chunk(chunks, dim=1), targets_BL.chunk(chunks, dim=1), strict=True):
            total_B = total_B + checkpoint(_row_sums, head, x_BCD, targets_BC, use_reentrant=False)
        return total_B

    return sums


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
            piece, to_logits_TW = _sharded_piece(F.linear(x_TD, weight_WD), words_T, tensor, z_weight, wants_x or wants_weight)
            total += piece
            if to_logits_TW is not None:
                to_logits_TW = to_logits_TW.to(weight_WD.dtype)
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


def _sharded_piece(
    logits_TW: Tensor, words_T: Tensor, tensor: TensorParallel, z_weight: float, wants_gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """The summed loss of one chunk, and the gradient of this rank's logits if it is wanted. `words_T`: targets relative to this rank's
    first vocabulary entry, or _NO_WORD."""
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
        return total, None
    probabilities_TW.mul_(((1.0 + 2.0 * z_weight * log_partition_T) * counts_T / sums_T)[:, None])
    probabilities_TW.scatter_add_(1, words_T1, -is_here_T.float()[:, None])
    return total, probabilities_TW


def gathered_positions(x_BSD: Tensor, tensor: TensorParallel) -> Tensor:
    """All-gather of the positions, in order."""
    return gathered_parts(x_BSD, tensor.group).transpose(0, 1).flatten(1, 2)


def scattered_positions(x_BLD: Tensor, tensor: TensorParallel) -> Tensor:
    """Reduce-scatter: the sum over all ranks for this rank's positions."""
    return summed_part(torch.stack(x_BLD.chunk(tensor.ranks, dim=1)), tensor.group)
