"""Causal self-attention with grouped key/value heads, norms of queries and keys, windows, sinks and soft-capped scores.

Shape suffixes as in model.py.
"""

import torch
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.attend import attend
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.norms import RmsNorm, WeightlessNorm, norm_of
from slipway_trainer.rope import rotate
from slipway_trainer.sharding import local_part, own


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
        mixed_BHLE = mix(q_BHLE, k_BKLE, v_BKLE, mask_LL, self.scale, softcap=self.softcap, sinks_H=local_part(self.sinks))
        return self.o_proj(mixed_BHLE.transpose(1, 2).flatten(2))


def _norm(shape: Architecture, whole_size: int) -> nn.Module:
    """The norm of queries or keys; `whole_size`: the size of all heads together."""
    if shape.family.qk_norm == "weightless":
        return WeightlessNorm(shape.norm_epsilon)
    return norm_of(shape, whole_size if shape.family.qk_norm == "whole" else shape.head_size)


#: Epsilon of the norms between two projections; config.json has no key for it.
_EPSILON = 1e-6


class LatentAttention(nn.Module):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): the keys and values of all heads are projected from a
    compressed vector per token, optionally the queries as well. Rotary positions apply to a part of each query head, and to a part of the
    keys that all heads share. Submodules have their published names.

    N elements of a head without rotary positions, R elements with them, C size of the compressed vector.
    """

    def __init__(self, shape: Architecture, context: ContextParallel | None = None) -> None:
        super().__init__()
        assert shape.latent is not None
        self.context, self.latent, self.interleaved = context, shape.latent, shape.family.interleaved_rope
        self.scale, self.softcap = shape.score_scale, shape.attention_softcap
        latent, heads, bias = shape.latent, shape.attention_heads, shape.attention_bias
        if latent.q_rank is None:
            self.q_proj = nn.Linear(shape.hidden_size, heads * latent.head_size, bias=False)
        else:
            self.q_a_proj = nn.Linear(shape.hidden_size, latent.q_rank, bias=bias)
            self.q_a_layernorm = RmsNorm(latent.q_rank, _EPSILON)
            self.q_b_proj = nn.Linear(latent.q_rank, heads * latent.head_size, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(shape.hidden_size, latent.kv_rank + latent.rope_head_size, bias=bias)
        self.kv_a_layernorm = RmsNorm(latent.kv_rank, _EPSILON)
        self.kv_b_proj = nn.Linear(latent.kv_rank, heads * (latent.nope_head_size + latent.value_head_size), bias=False)
        self.o_proj = nn.Linear(heads * latent.value_head_size, shape.hidden_size, bias=shape.has_output_bias)
        self.sinks = nn.Parameter(torch.zeros(heads)) if shape.attention_sinks else None

    def forward(self, x_BLD: Tensor, cos_LR: Tensor | None, sin_LR: Tensor | None, *, mask_LL: Tensor | None = None) -> Tensor:
        """Like Attention.forward."""
        latent = self.latent
        q_BLX = self.q_proj(x_BLD) if latent.q_rank is None else self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x_BLD)))
        q_BHLN, q_BHLR = _heads(q_BLX, latent.head_size).split((latent.nope_head_size, latent.rope_head_size), dim=-1)
        compressed_BLC, k_BLR = self.kv_a_proj_with_mqa(x_BLD).split((latent.kv_rank, latent.rope_head_size), dim=-1)
        both_BHLE = _heads(self.kv_b_proj(self.kv_a_layernorm(compressed_BLC)), latent.nope_head_size + latent.value_head_size)
        k_BHLN, v_BHLE = both_BHLE.split((latent.nope_head_size, latent.value_head_size), dim=-1)
        k_BHLR = rotate(own(k_BLR).unsqueeze(1), cos_LR, sin_LR, self.interleaved).expand(-1, k_BHLN.size(1), -1, -1)
        q_BHLE = torch.cat((q_BHLN, rotate(q_BHLR, cos_LR, sin_LR, self.interleaved)), dim=-1)
        k_BHLE = torch.cat((k_BHLN, k_BHLR), dim=-1)
        mix = attend if self.context is None else self.context.attend
        mixed_BHLE = mix(q_BHLE, k_BHLE, v_BHLE, mask_LL, self.scale, softcap=self.softcap, sinks_H=local_part(self.sinks))
        return self.o_proj(mixed_BHLE.transpose(1, 2).flatten(2))


def _heads(x_BLX: Tensor, size: int) -> Tensor:
    return x_BLX.unflatten(-1, (-1, size)).transpose(1, 2)
