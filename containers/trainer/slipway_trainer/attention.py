"""Causal self-attention with grouped key/value heads, norms of queries and keys, windows, sinks and soft-capped scores.

Shape suffixes as in model.py.
"""

import torch
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.attend import attend, own_part
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.norms import WeightlessNorm, norm_of
from slipway_trainer.rope import rotate


class Attention(nn.Module):
    """The attention of one layer."""

    def __init__(self, shape: Architecture, context: ContextParallel | None, layer: int = 0) -> None:
        super().__init__()
        self.head_size, self.context, self.interleaved = shape.head_size, context, shape.family.interleaved_rope
        self.scale, self.softcap = shape.score_scale, shape.attention_softcap
        queries, keys = shape.attention_heads * shape.head_size, shape.kv_heads * shape.head_size
        bias = shape.attention_bias
        self.q_proj = nn.Linear(shape.hidden_size, queries, bias=bias)
        self.k_proj = nn.Linear(shape.hidden_size, keys, bias=bias)
        self.v_proj = nn.Linear(shape.hidden_size, keys, bias=bias)
        self.o_proj = nn.Linear(queries, shape.hidden_size, bias=shape.has_output_bias)
        self.sinks = nn.Parameter(torch.zeros(shape.attention_heads)) if shape.attention_sinks else None
        self.norms_whole = shape.family.qk_norm == "whole"
        self.q_norm = _norm(shape, queries) if shape.has_qk_norm(layer) else None
        self.k_norm = _norm(shape, keys) if shape.has_qk_norm(layer) else None

    def _heads(self, x_BLX: Tensor, norm: nn.Module | None = None) -> Tensor:
        """Splits a projection into heads and applies the norm. -1: under tensor parallelism a rank has only its share of the heads."""
        if norm is not None and self.norms_whole:
            x_BLX = norm(x_BLX)
        x_BLHE = x_BLX.unflatten(-1, (-1, self.head_size))
        return (x_BLHE if norm is None or self.norms_whole else norm(x_BLHE)).transpose(1, 2)

    def forward(
        self,
        x_BLD: Tensor,
        cos_LE: Tensor | None,
        sin_LE: Tensor | None,
        *,
        mask_LL: Tensor | None = None,
        temperature_L1: Tensor | None = None,
    ) -> Tensor:
        """Returns the attention output (B, L, D).

        `mask_LL`: summand of the scores of a query (row) and its keys, of shape (L, L) or per sequence (B, 1, L, L), see `summand`; None
        for causal attention. With context parallelism, rows are this rank's queries and columns all keys. Soft-capped scores require a
        mask. Without cosine and sine, the layer has no positions. `temperature_L1`: factor of the queries.
        """
        q_BHLE = rotate(self._heads(self.q_proj(x_BLD), self.q_norm), cos_LE, sin_LE, self.interleaved)
        k_BKLE = rotate(self._heads(self.k_proj(x_BLD), self.k_norm), cos_LE, sin_LE, self.interleaved)
        v_BKLE = self._heads(self.v_proj(x_BLD))
        if temperature_L1 is not None:
            q_BHLE = (q_BHLE * temperature_L1).to(q_BHLE.dtype)
        mix = attend if self.context is None else self.context.attend
        mixed_BHLE = mix(q_BHLE, k_BKLE, v_BKLE, mask_LL, self.scale, softcap=self.softcap, sinks_H=own_part(self.sinks))
        return self.o_proj(mixed_BHLE.transpose(1, 2).flatten(2))


def _norm(shape: Architecture, whole_size: int) -> nn.Module:
    """The norm of queries or keys; `whole_size`: the size of all heads together."""
    if shape.family.qk_norm == "weightless":
        return WeightlessNorm(shape.norm_epsilon)
    return norm_of(shape, whole_size if shape.family.qk_norm == "whole" else shape.head_size)
