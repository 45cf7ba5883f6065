"""Direct preference optimization (arXiv 2305.18290): the model learns to prefer chosen answers over rejected ones, relative to a reference
model.

Shape suffixes as in model.py; P pairs, B = 2 P rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.lora import LoraLinear

#: Computes the log-probability of each row's targets from the last hidden states (loss.py).
Sums = Callable[[nn.Module, Tensor], Tensor]


class Reference(Protocol):
    """The reference model: the initial weights of a run."""

    def __call__(self, model: nn.Module, tokens_BL: Tensor, sums: Sums) -> Tensor:
        """Log-probabilities (B) of the reference model, without gradients. `model`: the trained model."""


class FrozenCopy:
    """The initial weights in a separate model, sharded like the trained model."""

    def __init__(self, copy: nn.Module) -> None:
        self._copy = copy

    @torch.no_grad()
    def __call__(self, model: nn.Module, tokens_BL: Tensor, sums: Sums) -> Tensor:
        return self._copy(tokens_BL, sums)


class WithoutAdapters:
    """The trained model with its adapters disabled, because its frozen weights are the initial weights."""

    @torch.no_grad()
    def __call__(self, model: nn.Module, tokens_BL: Tensor, sums: Sums) -> Tensor:
        with _without_adapters(model):
            return model(tokens_BL, sums)


@contextmanager
def _without_adapters(model: nn.Module) -> Iterator[None]:
    adapted = [module for module in model.modules() if isinstance(module, LoraLinear)]
    for module in adapted:
        module.adapts = False
    try:
        yield
    finally:
        for module in adapted:
            module.adapts = True


def preference_loss(own_B: Tensor, reference_B: Tensor, beta: float) -> Tensor:
    """The mean loss of the pairs, from the log-probabilities of their rows: -log sigmoid(beta (gain of chosen - gain of rejected))."""
    gains_P2 = (own_B - reference_B).view(-1, 2)
    return -F.logsigmoid(beta * (gains_P2[:, 0] - gains_P2[:, 1])).mean()
