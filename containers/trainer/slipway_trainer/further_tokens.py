"""Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): additional modules after the model that predict further tokens.

Module k combines the output of the previous module at a position with the embedding of the token k positions later, applies a block like
the model's last one, and predicts the following token with the model's head. The input of module 1 is the input of the model's head. The
modules are used only in training. Names are those of the published files, as is the order of embedding and hidden state in the projection.

Shape suffixes as in model.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.loss import IGNORED
from slipway_trainer.norms import norm_of


class Further(NamedTuple):
    """The input of one module: the shifted tokens, the loss of its hidden states, and the positions without such a token."""

    tokens_BL: Tensor
    loss: Callable[[nn.Module, Tensor], Tensor]
    outside_BL: Tensor | None = None


class PredictionModule(nn.Module):
    """One module; `block` has the architecture of a block of the model."""

    def __init__(self, shape: Architecture, block: nn.Module) -> None:
        super().__init__()
        self.enorm, self.hnorm = norm_of(shape, shape.hidden_size), norm_of(shape, shape.hidden_size)
        self.eh_proj = nn.Linear(2 * shape.hidden_size, shape.hidden_size, bias=False)
        self.block = block
        self.norm = norm_of(shape, shape.hidden_size)

    def forward(self, x_BLD: Tensor, embedded_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        """Returns the input of the head (B, L, D), which is also the input of the next module."""
        joined_BLD = self.eh_proj(torch.cat((self.enorm(embedded_BLD), self.hnorm(x_BLD)), dim=-1))
        return self.norm(self.block(joined_BLD, *tables))


def shifted(tokens_BL: Tensor, targets_BL: Tensor, places: int, documents_BL: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Shifts tokens and targets by `places` positions. Targets beyond the row or in another document are IGNORED; the padding of tokens is
    never attended to by positions with a target. The last tensor is true at these positions."""
    tokens_BL = F.pad(tokens_BL[:, places:], (0, places))
    outside_BL = torch.zeros_like(targets_BL[:, places:], dtype=torch.bool)
    if documents_BL is not None:
        outside_BL = documents_BL[:, places:] != documents_BL[:, :-places]
    outside_BL = F.pad(outside_BL, (0, places), value=True)
    return tokens_BL, F.pad(targets_BL[:, places:], (0, places)).masked_fill(outside_BL, IGNORED), outside_BL
