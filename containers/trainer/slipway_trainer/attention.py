"""Causal self-attention: grouped key/value heads, norms of queries and keys, windows, sinks and capped scores.

Shape suffixes as in model.py.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.norms import norm_of
from slipway_trainer.rope import rotate


class Attention(nn.Module):
    """One layer's attention."""

    def __init__(self, shape: Architecture, context: ContextParallel | None) -> None:
        super().__init__()
        self.head_size, self.context, self.interleaved = shape.head_size, context, shape.family.interleaved_rope
        self.scale, self.softcap = shape.family.attention_scale, shape.attention_softcap
        queries, keys = shape.attention_heads * shape.head_size, shape.kv_heads * shape.head_size
        bias = shape.attention_bias
        self.q_proj = nn.Linear(shape.hidden_size, queries, bias=bias)
        self.k_proj = nn.Linear(shape.hidden_size, keys, bias=bias)
        self.v_proj = nn.Linear(shape.hidden_size, keys, bias=bias)
        self.o_proj = nn.Linear(queries, shape.hidden_size, bias=shape.has_output_bias)
        self.sinks = nn.Parameter(torch.zeros(shape.attention_heads)) if shape.attention_sinks else None
        self.norms_whole = shape.family.qk_norm == "whole"
        self.q_norm = norm_of(shape, queries if self.norms_whole else self.head_size) if shape.qk_norm else None
        self.k_norm = norm_of(shape, keys if self.norms_whole else self.head_size) if shape.qk_norm else None

    def _heads(self, x_BLX: Tensor, norm: nn.Module | None = None) -> Tensor:
        """The heads of a projection, behind their norm. -1: under tensor parallelism a rank has only its share of the heads."""
        if norm is not None and self.norms_whole:
            x_BLX = norm(x_BLX)
        x_BLHE = x_BLX.unflatten(-1, (-1, self.head_size))
        return (x_BLHE if norm is None or self.norms_whole else norm(x_BLHE)).transpose(1, 2)

    def forward(self, x_BLD: Tensor, cos_LE: Tensor, sin_LE: Tensor, *, mask_LL: Tensor | None = None) -> Tensor:
        """`mask_LL`: which keys a query sees; None = itself and all before it. Capped scores need one."""
        q_BHLE = rotate(self._heads(self.q_proj(x_BLD), self.q_norm), cos_LE, sin_LE, self.interleaved)
        k_BKLE = rotate(self._heads(self.k_proj(x_BLD), self.k_norm), cos_LE, sin_LE, self.interleaved)
        v_BKLE = self._heads(self.v_proj(x_BLD))
        if self.context is not None:
            mixed_BHLE = self.context.attention(q_BHLE, k_BKLE, v_BKLE)
        else:
            mixed_BHLE = attend(q_BHLE, k_BKLE, v_BKLE, mask_LL, self.scale, softcap=self.softcap, sinks_H=self.sinks)
        return self.o_proj(mixed_BHLE.transpose(1, 2).flatten(2))


def attend(
    q_BHLE: Tensor,
    k_BKLE: Tensor,
    v_BKLE: Tensor,
    mask_LL: Tensor | None,
    scale: float | None = None,
    *,
    softcap: float | None = None,
    sinks_H: Tensor | None = None,
) -> Tensor:
    """Values mixed by the softmax of scores, in one of PyTorch's fused kernels but for capped scores. `scale`: None = 1 / sqrt(head size).
    Heads of values may have another size than those of queries and keys."""
    if softcap is not None:
        assert mask_LL is not None
        return _capped(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale, softcap, sinks_H)
    if sinks_H is not None:
        return _with_sinks(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale, sinks_H)
    return _fused(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale)


def _fused(q_BHLE: Tensor, k_BKLE: Tensor, v_BKLE: Tensor, mask_LL: Tensor | None, scale: float | None) -> Tensor:
    return F.scaled_dot_product_attention(
        q_BHLE,
        k_BKLE,
        v_BKLE,
        attn_mask=mask_LL,
        is_causal=mask_LL is None,
        scale=scale,
        enable_gqa=q_BHLE.size(1) != k_BKLE.size(1),
    )


def window_mask(length: int, window: int, device: torch.device) -> Tensor:
    """(L, L): whether a query (row) sees a key (column): itself and the `window` - 1 before it."""
    positions_L = torch.arange(length, device=device)
    before_LL = positions_L[:, None] - positions_L[None, :]
    return (before_LL >= 0) & (before_LL < window)


#: Elements by which heads grow for a sink: kernels ask for sizes that are multiples of it.
_ELEMENTS = 8


def _with_sinks(q_BHLE: Tensor, k_BKLE: Tensor, v_BKLE: Tensor, mask_LL: Tensor | None, scale: float | None, sinks_H: Tensor) -> Tensor:
    """Attention in which each head has one more score, its sink, that takes its share of the softmax and adds nothing.

    The sink is the score of one more position at the beginning, whose value is zero: queries get an element with the sink, which meets one
    in that position's key alone. So no score has to be in memory, and grouped heads of keys may share the position.
    """
    scale = q_BHLE.size(-1) ** -0.5 if scale is None else scale
    size = q_BHLE.size(-1)
    sinks_BHL1 = (sinks_H / scale).to(q_BHLE.dtype)[None, :, None, None].expand(*q_BHLE.shape[:3], 1)
    q_BHLE = F.pad(torch.cat((q_BHLE, sinks_BHL1), dim=-1), (0, _ELEMENTS - 1, 1, 0))
    first_E = k_BKLE.new_zeros(size + _ELEMENTS)
    first_E[size] = 1.0
    k_BKLE = torch.cat((first_E.expand(*k_BKLE.shape[:2], 1, -1), F.pad(k_BKLE, (0, _ELEMENTS))), dim=2)
    v_BKLE = F.pad(v_BKLE, (0, 0, 1, 0))
    mask_LL = None if mask_LL is None else F.pad(mask_LL, (1, 0, 1, 0), value=True)
    return _fused(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale)[:, :, 1:]


def _capped(
    q_BHLE: Tensor,
    k_BKLE: Tensor,
    v_BKLE: Tensor,
    mask_LL: Tensor,
    scale: float | None,
    cap: float,
    sinks_H: Tensor | None = None,
) -> Tensor:
    """Attention whose scores pass through cap * tanh(score / cap). No fused kernel of PyTorch has this: the scores are in memory."""
    groups = q_BHLE.size(1) // k_BKLE.size(1)
    k_BHLE, v_BHLE = k_BKLE.repeat_interleave(groups, 1), v_BKLE.repeat_interleave(groups, 1)
    scale = q_BHLE.size(-1) ** -0.5 if scale is None else scale
    scores_BHLL = (q_BHLE @ k_BHLE.transpose(2, 3)) * scale
    scores_BHLL = torch.tanh(scores_BHLL / cap) * cap
    scores_BHLL = scores_BHLL.float().masked_fill(~mask_LL, float("-inf"))
    if sinks_H is not None:
        sinks_BHL1 = sinks_H.float()[None, :, None, None].expand(*scores_BHLL.shape[:3], 1)
        scores_BHLL = torch.cat((scores_BHLL, sinks_BHL1), dim=-1)
    weights_BHLL = scores_BHLL.softmax(-1)[..., : k_BHLE.size(2)].to(q_BHLE.dtype)
    return weights_BHLL @ v_BHLE
