"""Feed-forward blocks: dense blocks, and mixtures of experts (Mixtral, arXiv 2401.04088), optionally with shared experts (DeepSeekMoE,
arXiv 2401.06066).

Shape suffixes: T tokens of a micro-batch (B * L), X experts, N experts per token, A = T * N token-expert assignments, R assignments that
this rank computes, G groups of experts; others as in model.py.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer import grouped
from slipway_trainer.architecture import Architecture
from slipway_trainer.architecture_parts import Routing
from slipway_trainer.expert_parallel import ExpertParallel
from slipway_trainer.sharding import own

#: Prevents a division by zero.
_TINY = 1e-20


class Router(nn.Linear):
    """One logit per expert, always in float32: with lower precision, near ties would select other experts."""

    def forward(self, x_TD: Tensor) -> Tensor:
        bias_X = None if self.bias is None else own(self.bias).float()
        return F.linear(x_TD.float(), own(self.weight).float(), bias_X)


def chosen_experts(logits_TX: Tensor, routing: Routing, per_token: int, bias_X: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Weights and indices of each token's experts, both (T, N). `bias_X` affects only the choice of experts.

    Softmax over all experts (Mixtral, Qwen3-MoE, DeepSeek-V2; equivalent to GPT-OSS's softmax over the chosen experts), sigmoid with a bias
    for the choice (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), and group-limited routing (DeepSeek-V2, arXiv 2405.04434, section 2.2.2).
    """
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


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"silu": F.silu, "gelu": F.gelu, "gelu-tanh": partial(F.gelu, approximate="tanh")}
#: GPT-OSS's activation: the clamp of the gate and up projections, and the factor in the gate's sigmoid.
_LIMIT, _GAIN = 7.0, 1.702


def _clamped_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    gate, up = gate.clamp(max=_LIMIT), up.clamp(-_LIMIT, _LIMIT)
    return (up + 1) * gate * torch.sigmoid(gate * _GAIN)


class FeedForward(nn.Module):
    """A gated block with three matrices (SwiGLU by default), or a block with two matrices (GELU by default)."""

    def __init__(self, hidden_size: int, inner_size: int, gated: bool, activation: str | None = None, bias: bool = False) -> None:
        super().__init__()
        self._activation = activation or ("silu" if gated else "gelu")
        self.gate_proj = nn.Linear(hidden_size, inner_size, bias=bias) if gated else None
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=bias)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=bias)

    def forward(self, x_BLD: Tensor) -> Tensor:
        gate_BLF = None if self.gate_proj is None else self.gate_proj(x_BLD)
        return self.down_proj(self.activated(gate_BLF, self.up_proj(x_BLD)))

    def activated(self, gate_BLF: Tensor | None, up_BLF: Tensor) -> Tensor:
        """The input of the down projection: the activation of the gate and up projections."""
        if gate_BLF is None:
            return ACTIVATIONS[self._activation](up_BLF)
        if self._activation == "clamped-swiglu":
            return _clamped_swiglu(gate_BLF, up_BLF)
        return ACTIVATIONS[self._activation](gate_BLF) * up_BLF


class Experts(nn.Module):
    """The experts of this rank, named by their index in the model. Not a ModuleDict, which FSDP2 does not support before PyTorch 2.12."""

    def __init__(self, experts: Mapping[str, FeedForward]) -> None:
        super().__init__()
        for number, expert in experts.items():
            self.add_module(number, expert)

    def forward(self, x_RD: Tensor, visits_H: Tensor) -> Tensor:
        """Applies the experts to rows that are sorted by expert; `visits_H`: rows per expert. Experts without rows also run, so that they
        get gradients."""
        experts = list(self.children())
        if grouped.suits(x_RD, experts):
            return grouped.visit(x_RD, experts, visits_H)
        parts = zip(experts, x_RD.split(visits_H.tolist()), strict=True)
        return torch.cat([expert(part) for expert, part in parts])


class ExpertMixture(nn.Module):
    """A router assigns each token to N of X experts; with expert parallelism, experts are distributed over ranks. All tokens also pass
    through the shared experts, which are one block."""

    def __init__(self, shape: Architecture, parallel: ExpertParallel | None = None) -> None:
        super().__init__()
        self.per_token, self.total, self.parallel, self.routing = shape.experts_per_token, shape.experts, parallel, shape.routing
        #: Set by balance.py if the load of the experts is counted.
        self.balance: Any = None
        #: Number of ranks whose outputs are summed; more than 1 under tensor parallelism.
        self.summands = 1
        self.router = Router(shape.hidden_size, shape.experts, bias=shape.family.router_bias)
        # Not trained with gradients: loaded from published weights, or adjusted by balance.py.
        self.register_buffer("choice_bias", torch.zeros(shape.experts) if shape.routing.has_bias else None)
        held = parallel.held(shape.experts) if parallel is not None else range(shape.experts)
        block = partial(FeedForward, gated=shape.gated_mlp, activation=shape.family.activation)
        expert = partial(block, shape.hidden_size, shape.expert_inner_size, bias=shape.family.expert_bias)
        self.experts = Experts({str(number): expert() for number in held})
        self.shared = block(shape.hidden_size, shape.shared_ffn_hidden_size) if shape.shared_ffn_hidden_size else None

        has_gate = self.shared is not None and shape.family.shared_expert_gate
        self.shared_gate = nn.Linear(shape.hidden_size, 1, bias=False) if has_gate else None

    def forward(self, x_BLD: Tensor, padding_BL: Tensor | None = None) -> Tensor:
        """`padding_BL`: positions that the balance of experts does not count."""
        routed_BLD = self._routed(x_BLD, padding_BL)
        if self.shared is None:
            return routed_BLD
        shared_BLD = self.shared(x_BLD)
        return routed_BLD + (shared_BLD if self.shared_gate is None else self.shared_gate(x_BLD).sigmoid() * shared_BLD)

    def _routed(self, x_BLD: Tensor, padding_BL: Tensor | None) -> Tensor:
        """The weighted sum of the outputs of each token's experts."""
        x_TD = x_BLD.flatten(0, 1)
        logits_TX = self.router(x_TD).float()
        weights_TN, chosen_TN = chosen_experts(logits_TX, self.routing, self.per_token, self.choice_bias)
        visits_X = _visits(chosen_TN, self.total)
        if self.balance is not None and torch.is_grad_enabled():
            weights_TN = self.balance.attached(weights_TN, logits_TX, chosen_TN, self.routing, x_BLD.shape[:2], padding_BL)
        weights_TN = weights_TN.to(x_TD.dtype)
        order_A = chosen_TN.flatten().argsort(stable=True)
        tokens_A = order_A // self.per_token
        weights_A1 = weights_TN.flatten()[order_A, None]
        visit = self.experts if self.parallel is None else partial(self.parallel.visit, self.experts)
        if self.routing.weighs_inputs:
            out_AD = visit(x_TD[tokens_A] * weights_A1, visits_X)
        else:
            out_AD = visit(x_TD[tokens_A], visits_X) * weights_A1
        return torch.zeros_like(x_TD).index_add(0, tokens_A, out_AD).view_as(x_BLD)


def _visits(chosen_TN: Tensor, experts: int) -> Tensor:
    """The number of tokens per expert. (bincount would synchronize with the host to read the maximum.)"""
    chosen_A = chosen_TN.flatten()
    return chosen_A.new_zeros(experts).scatter_add_(0, chosen_A, torch.ones_like(chosen_A))
