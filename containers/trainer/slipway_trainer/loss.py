"""Cross entropy in chunks: the logits of a micro-batch (length x vocabulary, float32) are often the largest tensor of a step.

Shape suffixes as in model.py; C positions of one chunk, T = B * C.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from slipway_trainer.arguments import LOGITS_OF_CHUNK
from slipway_trainer.sharding import is_linear, stored_weight
from slipway_trainer.tensor_parallel import TensorParallel
from slipway_trainer.vocabulary_loss import IGNORED, head_loss


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
