"""Cross entropy in pieces: the logits of a whole micro-batch (length x vocabulary, float32) are often the largest tensor of a step."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

#: Logits of one piece stay below this many elements unless the run says otherwise.
CHUNK_ELEMENTS = 1 << 28


def chunks_for(asked: int, tokens: int, vocabulary_size: int) -> int:
    """How many pieces the sequence is cut into."""
    if asked > 0:
        return asked
    return max(1, -(-tokens * vocabulary_size // CHUNK_ELEMENTS))


def _piece(head: nn.Module, x_BLD: Tensor, targets_BL: Tensor, z_weight: float) -> Tensor:
    """Summed loss of one piece, in float32."""
    logits_TV = head(x_BLD).flatten(0, 1).float()
    total = F.cross_entropy(logits_TV, targets_BL.flatten(), reduction="sum")
    if z_weight:
        total = total + z_weight * torch.logsumexp(logits_TV, dim=-1).pow(2).sum()
    return total


def loss_over(targets_BL: Tensor, chunks: int, z_weight: float) -> Callable[[nn.Module, Tensor], Tensor]:
    """A loss for Transformer.forward: the mean over all targets, computed piece by piece and again in the backward pass."""

    def loss(head: nn.Module, x_BLD: Tensor) -> Tensor:
        if chunks == 1:
            return _piece(head, x_BLD, targets_BL, z_weight) / targets_BL.numel()
        total = x_BLD.new_zeros((), dtype=torch.float32)
        for x_BCD, targets_BC in zip(x_BLD.chunk(chunks, dim=1), targets_BL.chunk(chunks, dim=1), strict=True):
            total = total + checkpoint(_piece, head, x_BCD, targets_BC, z_weight, use_reentrant=False)
        return total / targets_BL.numel()

    return loss
