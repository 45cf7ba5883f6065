"""Routing of tokens to experts. Shape suffixes as in feed_forward.py; G groups of experts.

Softmax over all experts (Mixtral, Qwen3-MoE, DeepSeek-V2; equivalent to GPT-OSS's softmax over the chosen experts), sigmoid with a bias for
the choice (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), and group-limited routing (DeepSeek-V2, arXiv 2405.04434, section 2.2.2).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.architecture_parts import Routing
from slipway_trainer.sharding import own

#: Prevents a division by zero.
_TINY = 1e-20


class Router(nn.Linear):
    """One logit per expert, always in float32: with lower precision, near ties would select other experts."""

    def forward(self, x_TD: Tensor) -> Tensor:
        bias_X = None if self.bias is None else own(self.bias).float()
        return F.linear(x_TD.float(), own(self.weight).float(), bias_X)


def chosen_experts(logits_TX: Tensor, routing: Routing, per_token: int, bias_X: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Weights and indices of each token's experts, both (T, N). `bias_X` affects only the choice of experts."""
    scores_TX = logits_TX.sigmoid() if routing.score == "sigmoid" else logits_TX.softmax(-1)
    # Scores are monotonic in the logits, which have fewer ties.
    is_changed = bias_X is not None or routing.groups > 1
    order_TX = scores_TX.detach() if is_changed else logits_TX.detach()
    if bias_X is not None:
        order_TX = order_TX + bias_X
    if routing.groups > 1:
        order_TX = _within_groups(order_TX, routing)
    chosen_TN = order_TX.topk(per_token, dim=-1).indices
    weights_TN = scores_TX.gather(1, chosen_TN)
    if routing.normalises:
        weights_TN = weights_TN / (weights_TN.sum(-1, keepdim=True) + _TINY)
    return weights_TN * routing.scaling, chosen_TN


def _within_groups(order_TX: Tensor, routing: Routing) -> Tensor:
    """Sets the values of experts outside the best groups to minus infinity."""
    order_TGX = order_TX.unflatten(-1, (routing.groups, -1))
    of_groups_TG = order_TGX.topk(min(routing.deciding_experts, order_TGX.size(-1)), dim=-1).values.sum(-1)
    best_TG = of_groups_TG.topk(routing.top_groups, dim=-1).indices
    outside_TG = torch.ones_like(of_groups_TG, dtype=torch.bool).scatter(1, best_TG, False)
    return order_TGX.masked_fill(outside_TG.unsqueeze(-1), float("-inf")).flatten(1)
