"""Direct preference optimization (arXiv 2305.18290): the model learns to prefer chosen answers over rejected ones, relative to a reference
model.

Shape suffixes as in model.py; P pairs, B = 2 P rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.lora import LoraLinear

#: Computes the log-probability of each row's targets from the last hidden states (loss.py).
Sums = Callable[[nn.Module, Tensor], Tensor]


#: The reference model of DPO, the initial weights of a run: log-probabilities (B) of the rows (B, L), without gradients. The first argument
#: is the trained model.
Reference = Callable[[nn.Module, Tensor, Sums], Tensor]


@torch.no_grad()
def without_adapters(model: nn.Module, tokens_BL: Tensor, sums: Sums) -> Tensor:
    """The trained model with its adapters disabled as reference, because its frozen weights are the initial weights."""
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
