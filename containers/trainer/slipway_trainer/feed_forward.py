"""Feed-forward blocks: dense ones, and mixtures of experts (Mixtral, arXiv 2401.04088).

Shape suffixes: T tokens of a micro-batch (B * L), X experts, N experts that one token visits, A = T * N visits, R visits that this rank
computes; others as in model.py.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.expert_parallel import ExpertParallel

ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu, "gelu-tanh": partial(F.gelu, approximate="tanh")}


class FeedForward(nn.Module):
    """Three matrices with a gate, SwiGLU unless `activation` says otherwise; or two, with GELU."""

    def __init__(self, hidden_size: int, inner_size: int, gated: bool, activation: str | None = None) -> None:
        super().__init__()
        self._activation = ACTIVATIONS[activation or ("silu" if gated else "gelu")]
        self.gate_proj = nn.Linear(hidden_size, inner_size, bias=False) if gated else None
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    def forward(self, x_BLD: Tensor) -> Tensor:
        up_BLF = self.up_proj(x_BLD)
        inner_BLF = self._activation(up_BLF) if self.gate_proj is None else self._activation(self.gate_proj(x_BLD)) * up_BLF
        return self.down_proj(inner_BLF)


class Experts(nn.ModuleDict):
    """The experts that this rank holds, by their number in the whole model."""

    def forward(self, x_RD: Tensor, visits: list[int]) -> Tensor:
        """Rows are sorted by expert; `visits` says how many each has. One with none still takes part: its gradients must exist."""
        parts = zip(self.values(), x_RD.split(visits), strict=True)
        return torch.cat([expert(part) for expert, part in parts])


class ExpertMixture(nn.Module):
    """A router sends each token to N of X experts; with expert parallelism some of them are on other ranks."""

    def __init__(self, shape: Architecture, parallel: ExpertParallel | None = None) -> None:
        super().__init__()
        self.per_token, self.total, self.parallel = shape.experts_per_token, shape.experts, parallel
        self.router = nn.Linear(shape.hidden_size, shape.experts, bias=False)
        held = parallel.held(shape.experts) if parallel is not None else range(shape.experts)
        self.normalises = shape.normalises_routing
        expert = partial(FeedForward, shape.hidden_size, shape.expert_inner_size, shape.gated_mlp, shape.family.activation)
        self.experts = Experts({str(number): expert() for number in held})

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_TD = x_BLD.flatten(0, 1)
        scores_TX = F.softmax(self.router(x_TD).float(), dim=-1)
        weights_TN, chosen_TN = scores_TX.topk(self.per_token, dim=-1)
        if self.normalises:
            weights_TN = weights_TN / weights_TN.sum(-1, keepdim=True)
        weights_TN = weights_TN.to(x_TD.dtype)
        order_A = chosen_TN.flatten().argsort(stable=True)
        tokens_A = order_A // self.per_token
        visits_X = chosen_TN.flatten().bincount(minlength=self.total)
        out_AD = self._visit(x_TD[tokens_A], visits_X) * weights_TN.flatten()[order_A, None]
        return torch.zeros_like(x_TD).index_add(0, tokens_A, out_AD).view_as(x_BLD)

    def _visit(self, x_AD: Tensor, visits_X: Tensor) -> Tensor:
        """What the experts make of rows that are sorted by expert, in the same order."""
        if self.parallel is None:
            return self.experts(x_AD, visits_X.tolist())
        return self.parallel.visit(self.experts, x_AD, visits_X)
