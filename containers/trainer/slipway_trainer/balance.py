"""Load balancing of a mixture of experts: counts the tokens of each expert, and balances them if requested.

Three published methods, each disabled by default: a load-balancing loss (Switch Transformers, arXiv 2101.03961, section 2.2, over the
tokens of a micro-batch; DeepSeek-V3, arXiv 2412.19437, equations 17 to 20, over the tokens of each sequence), a z-loss of the router's
logits (ST-MoE, arXiv 2202.08906, equation 5), and a routing bias that is adjusted by the load (DeepSeek-V3, section 2.1.2).

Shape suffixes as in feed_forward.py; B sequences, L positions of one sequence, Y layers with experts.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from slipway_trainer.architecture_parts import Routing
from slipway_trainer.feed_forward import ExpertMixture

#: Prevents a division by zero.
_TINY = 1e-20


class _Attached(torch.autograd.Function):
    """Returns the weights unchanged. The backward pass also computes the gradients of `loss`, which is not part of the output, and adds the
    token counts: once per micro-batch, even if the forward pass is recomputed."""

    @staticmethod
    def forward(ctx: Any, weights_TN: Tensor, loss: Tensor, visits_X: Tensor, counts_X: Tensor) -> Tensor:
        ctx.save_for_backward(visits_X)
        ctx.counts_X, ctx.loss_type = counts_X, loss.dtype
        return weights_TN.view_as(weights_TN)

    @staticmethod
    def backward(ctx: Any, gradient_TN: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (visits_X,) = ctx.saved_tensors
        ctx.counts_X += visits_X
        return gradient_TN, torch.ones((), dtype=ctx.loss_type, device=gradient_TN.device), None, None


def expert_counts(chosen_BLN: Tensor, counted_BL: Tensor, experts: int) -> Tensor:
    """(B, X): number of tokens per expert. `counted_BL`: 1 for tokens, 0 for padding."""
    counted_BA = counted_BL.unsqueeze(-1).expand(chosen_BLN.shape).flatten(1)
    return counted_BL.new_zeros(len(chosen_BLN), experts).scatter_add_(1, chosen_BLN.flatten(1), counted_BA)


def balance_loss(logits_BLX: Tensor, chosen_BLN: Tensor, routing: Routing, counted_BL: Tensor) -> Tensor:
    """The load-balancing loss: 1 if every expert has the same load in every sequence, otherwise greater. Gradients flow through the scores,
    not the counts. Padding does not count."""
    scores_BLX = logits_BLX.sigmoid() if routing.score == "sigmoid" else logits_BLX.softmax(-1)
    shares_BLX = scores_BLX / scores_BLX.sum(-1, keepdim=True) * counted_BL.unsqueeze(-1)
    shares_BX = shares_BLX.sum(1) / counted_BL.sum(1, keepdim=True).clamp(min=1)
    counts_BX = expert_counts(chosen_BLN, counted_BL, logits_BLX.size(-1))
    return (counts_BX / counts_BX.mean(1, keepdim=True).clamp(min=_TINY) * shares_BX).sum(1).mean()


def router_z_loss(logits_BLX: Tensor, counted_BL: Tensor) -> Tensor:
    """The router z-loss: mean squared logsumexp of `logits_BLX` over tokens, without padding; a scalar."""
    return (logits_BLX.logsumexp(-1).square() * counted_BL).sum() / counted_BL.sum().clamp(min=1)


@dataclass(frozen=True)
class LayerBalance:
    """The load-balancing losses of one layer. The weights are those of a step divided by the number of micro-batches."""

    balance_weight: float
    per_sequence: bool
    z_weight: float
    #: Number of tokens per expert since the last optimizer step.
    counts_X: Tensor

    def attached(
        self, weights_TN: Tensor, logits_TX: Tensor, chosen_TN: Tensor, routing: Routing, size: torch.Size, padding_BL: Tensor | None
    ) -> Tensor:
        """The weights of the chosen experts, with this layer's losses attached. `size`: (B, L) of the micro-batch."""
        counted_BL = logits_TX.new_ones(size) if padding_BL is None else (~padding_BL).to(logits_TX.dtype)
        if not self.per_sequence:
            counted_BL = counted_BL.view(1, -1)
        logits_BLX, loss = logits_TX.view(*counted_BL.shape, -1), logits_TX.new_zeros(())
        chosen_BLN = chosen_TN.view(*counted_BL.shape, -1)
        visits_X = expert_counts(chosen_BLN, counted_BL, logits_TX.size(-1)).sum(0)
        if self.balance_weight:
            loss = loss + self.balance_weight * balance_loss(logits_BLX, chosen_BLN, routing, counted_BL)
        if self.z_weight:
            loss = loss + self.z_weight * router_z_loss(logits_BLX, counted_BL)
        if not (weights_TN.requires_grad or loss.requires_grad):
            # There is no backward pass through a router behind frozen layers. If its block is recomputed, all tokens are counted twice,
            # which does not change the proportions.
            self.counts_X.add_(visits_X)
            return weights_TN
        return _Attached.apply(weights_TN, loss, visits_X, self.counts_X)


class ExpertBalance:
    """Counts the tokens of each expert in all layers of a model, without padding, and applies the routing bias."""

    def __init__(self, model: nn.Module, arguments: argparse.Namespace, micro_steps: int, device: torch.device) -> None:
        self._layers = [module for module in model.modules() if isinstance(module, ExpertMixture)]
        self._rate = arguments.routing_bias_rate
        self._counts = [torch.zeros(layer.total, device=device) for layer in self._layers]
        for layer, counts_X in zip(self._layers, self._counts, strict=True):
            layer.balance = LayerBalance(
                arguments.balance_loss / micro_steps / layer.summands,
                arguments.balance_loss_over == "sequence",
                arguments.router_z_loss / micro_steps / layer.summands,
                counts_X,
            )

    def take(self) -> Tensor:
        """(Y, X): number of this rank's tokens per expert since the last call."""
        taken = torch.stack(self._counts)
        for counts_X in self._counts:
            counts_X.zero_()
        return taken

    @torch.no_grad()
    def move_bias(self, loads_YX: Tensor, bad: Tensor) -> None:
        """Decreases the bias of experts with a load above the mean over all ranks and increases that of the others; does nothing if `bad`
        is not zero."""
        if not self._rate:
            return
        moved_YX = self._rate * (loads_YX.mean(1, keepdim=True) - loads_YX).sign() * (bad == 0)
        for layer, moved_X in zip(self._layers, moved_YX, strict=True):
            layer.choice_bias += moved_X


def expert_balance(model: nn.Module, arguments: argparse.Namespace, micro_steps: int, device: torch.device) -> ExpertBalance | None:
    """The load balancing of a model; None if it has no experts of this trainer."""
    has_experts = any(isinstance(module, ExpertMixture) for module in model.modules())
    return ExpertBalance(model, arguments, micro_steps, device) if has_experts else None
