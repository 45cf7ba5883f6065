"""Feed-forward blocks: dense ones, and mixtures of experts (Mixtral, arXiv 2401.04088).

Shape suffixes: T tokens of a micro-batch (B * L), X experts, N experts that one token visits; others as in model.py.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.settings import Architecture


class FeedForward(nn.Module):
    """SwiGLU with three matrices, or GELU with two."""

    def __init__(self, hidden_size: int, inner_size: int, gated: bool) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, inner_size, bias=False) if gated else None
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    def forward(self, x_BLD: Tensor) -> Tensor:
        up_BLF = self.up_proj(x_BLD)
        inner_BLF = F.gelu(up_BLF) if self.gate_proj is None else F.silu(self.gate_proj(x_BLD)) * up_BLF
        return self.down_proj(inner_BLF)


class ExpertMixture(nn.Module):
    """All experts on every rank; each sees only the tokens that the router sends it."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.per_token = shape.experts_per_token
        self.router = nn.Linear(shape.hidden_size, shape.experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(shape.hidden_size, shape.ffn_hidden_size, shape.gated_mlp) for _ in range(shape.experts))

    def forward(self, x_BLD: Tensor) -> Tensor:
        x_TD = x_BLD.flatten(0, 1)
        scores_TX = F.softmax(self.router(x_TD).float(), dim=-1)
        weights_TN, chosen_TN = scores_TX.topk(self.per_token, dim=-1)
        weights_TN = (weights_TN / weights_TN.sum(-1, keepdim=True)).to(x_TD.dtype)
        out_TD = torch.zeros_like(x_TD)
        for number, expert in enumerate(self.experts):
            tokens, place = torch.where(chosen_TN == number)
            # An expert without tokens still takes part, with none: its gradients must exist on every rank.
            out_TD = out_TD.index_add(0, tokens, expert(x_TD[tokens]) * weights_TN[tokens, place, None])
        return out_TD.view_as(x_BLD)
