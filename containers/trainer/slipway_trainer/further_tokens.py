"""Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): behind the model stand modules that predict a further token each.

Module k joins what the one before made of a position to the embedding of the token k places on, sends it through a block like the last one
of the model, and predicts the token behind that with the model's own head. Module 1 begins with what the model gives its head. Training
alone computes them. Names are those of the published files, and so is the order of embedding and hidden state in the joining matrix.

Shape suffixes as in model.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.norms import norm_of
from slipway_trainer.vocabulary_loss import IGNORED


class Further(NamedTuple):
    """What one module is given: for each position the token so many places on, and what its hidden states are to be good for."""

    tokens_BL: Tensor
    loss: Callable[[nn.Module, Tensor], Tensor]


class PredictionModule(nn.Module):
    """One module; `block` is a block of the model."""

    def __init__(self, shape: Architecture, block: nn.Module) -> None:
        super().__init__()
        self.enorm, self.hnorm = norm_of(shape, shape.hidden_size), norm_of(shape, shape.hidden_size)
        self.eh_proj = nn.Linear(2 * shape.hidden_size, shape.hidden_size, bias=False)
        self.block = block
        self.norm = norm_of(shape, shape.hidden_size)

    def forward(self, x_BLD: Tensor, embedded_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        """What the head is given; also what the next module begins with."""
        joined_BLD = self.eh_proj(torch.cat((self.enorm(embedded_BLD), self.hnorm(x_BLD)), dim=-1))
        return self.norm(self.block(joined_BLD, *tables))


def shifted(tokens_BL: Tensor, targets_BL: Tensor, places: int, documents_BL: Tensor | None) -> tuple[Tensor, Tensor]:
    """Of each position the token so many places on, and the target there. There is no target beyond the row, or in another document; what
    stands for the tokens beyond the row is seen by no position that has one."""
    tokens_BL = F.pad(tokens_BL[:, places:], (0, places))
    shifted_BL = targets_BL[:, places:]
    if documents_BL is not None:
        shifted_BL = shifted_BL.where(documents_BL[:, places:] == documents_BL[:, :-places], IGNORED)
    return tokens_BL, F.pad(shifted_BL, (0, places), value=IGNORED)
