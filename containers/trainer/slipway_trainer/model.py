"""A decoder-only transformer: rotary positions, grouped-query attention, gated or plain feed-forward, RMS norms.

Shape suffixes of tensors: B sequences of a micro-batch, L positions, D hidden size, H query heads, K key/value heads,
E size of one head, F inner size of the feed-forward block, V vocabulary.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.expert_parallel import ExpertParallel
from slipway_trainer.feed_forward import ExpertMixture, FeedForward
from slipway_trainer.recompute import layers_recomputed
from slipway_trainer.rope import rope_tables, rotate
from slipway_trainer.settings import Architecture


class RmsNorm(nn.Module):
    """Root-mean-square norm, computed in float32."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x_BLD: Tensor) -> Tensor:
        wide = x_BLD.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return scaled.to(x_BLD.dtype) * self.weight


class Attention(nn.Module):
    """Causal self-attention with grouped key/value heads."""

    def __init__(self, shape: Architecture, context: ContextParallel | None) -> None:
        super().__init__()
        self.head_size = shape.head_size
        self.context = context
        queries, keys = shape.attention_heads * shape.head_size, shape.kv_heads * shape.head_size
        self.q_proj = nn.Linear(shape.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, shape.hidden_size, bias=False)

    def _heads(self, x_BLX: Tensor) -> Tensor:
        # -1: under tensor parallelism a rank has only its share of the heads.
        return x_BLX.unflatten(-1, (-1, self.head_size)).transpose(1, 2)

    def forward(self, x_BLD: Tensor, cos_LE: Tensor, sin_LE: Tensor) -> Tensor:
        q_BHLE = rotate(self._heads(self.q_proj(x_BLD)), cos_LE, sin_LE)
        k_BKLE = rotate(self._heads(self.k_proj(x_BLD)), cos_LE, sin_LE)
        v_BKLE = self._heads(self.v_proj(x_BLD))
        if self.context is not None:
            mixed_BHLE = self.context.attention(q_BHLE, k_BKLE, v_BKLE)
        else:
            grouped = q_BHLE.size(1) != k_BKLE.size(1)
            mixed_BHLE = F.scaled_dot_product_attention(q_BHLE, k_BKLE, v_BKLE, is_causal=True, enable_gqa=grouped)
        return self.o_proj(mixed_BHLE.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """One layer: attention and feed-forward, each behind a norm and around a residual."""

    def __init__(self, shape: Architecture, feed_forward: nn.Module, context: ContextParallel | None) -> None:
        super().__init__()
        self.attention_norm = RmsNorm(shape.hidden_size, shape.norm_epsilon)
        self.attention = Attention(shape, context)
        self.mlp_norm = RmsNorm(shape.hidden_size, shape.norm_epsilon)
        self.mlp = feed_forward

    def forward(self, x_BLD: Tensor, cos_LE: Tensor, sin_LE: Tensor) -> Tensor:
        x_BLD = x_BLD + self.attention(self.attention_norm(x_BLD), cos_LE, sin_LE)
        return x_BLD + self.mlp(self.mlp_norm(x_BLD))


class Transformer(nn.Module):
    """Token ids in; logits out, or with targets the loss, so that the head's logits never need to exist all at once."""

    def __init__(self, shape: Architecture, context: ContextParallel | None = None, experts: ExpertParallel | None = None) -> None:
        super().__init__()
        self.shape, self.context = shape, context
        #: More than 1: layers are recomputed in groups of so many in the backward pass.
        self.recompute_layers = 1
        self.embed = nn.Embedding(shape.vocabulary_size, shape.hidden_size)
        self.blocks = nn.ModuleDict({str(index): Block(shape, _feed_forward(shape, experts), context) for index in range(shape.layers)})
        self.norm = RmsNorm(shape.hidden_size, shape.norm_epsilon)
        self.head = nn.Linear(shape.hidden_size, shape.vocabulary_size, bias=False)
        if shape.tied_embeddings:
            self.head.weight = self.embed.weight

    def forward(self, tokens_BL: Tensor, loss: Callable[[nn.Module, Tensor], Tensor] | None = None) -> Tensor:
        """Logits (B, L, V), or what `loss(head, hidden states)` makes of the last hidden states.

        With context parallelism the tokens are this rank's part of the sequence.
        """
        x_BLD = self.embed(tokens_BL)
        cos_LE, sin_LE = rope_tables(self._positions(tokens_BL), self.shape.head_size, self.shape.rope_theta, self.shape.rope_scaling)
        blocks = list(self.blocks.values())
        if self.recompute_layers > 1:
            for first in range(0, len(blocks), self.recompute_layers):
                x_BLD = layers_recomputed(blocks[first : first + self.recompute_layers], x_BLD, cos_LE, sin_LE)
        else:
            for block in blocks:
                x_BLD = block(x_BLD, cos_LE, sin_LE)
        x_BLD = self.norm(x_BLD)
        return self.head(x_BLD) if loss is None else loss(self.head, x_BLD)

    def _positions(self, tokens_BL: Tensor) -> Tensor:
        if self.context is None:
            return torch.arange(tokens_BL.size(1), device=tokens_BL.device)
        return self.context.positions(tokens_BL.size(1) * self.context.ranks, tokens_BL.device)


def _feed_forward(shape: Architecture, experts: ExpertParallel | None) -> nn.Module:
    if shape.experts:
        return ExpertMixture(shape, experts)
    return FeedForward(shape.hidden_size, shape.ffn_hidden_size, shape.gated_mlp)


def parameter_count(shape: Architecture) -> tuple[int, int]:
    """(all parameters, those that are embeddings or head), counted from the shape."""
    attention = shape.hidden_size * shape.head_size * (2 * shape.attention_heads + 2 * shape.kv_heads)
    mlp = shape.hidden_size * shape.ffn_hidden_size * (3 if shape.gated_mlp else 2)
    router = shape.hidden_size * shape.experts
    block = attention + mlp * max(1, shape.experts) + router + 2 * shape.hidden_size
    embeddings = shape.vocabulary_size * shape.hidden_size * (1 if shape.tied_embeddings else 2)
    return shape.layers * block + embeddings + shape.hidden_size, embeddings
