"""Softmax attention of given queries, keys and values, with PyTorch's fused kernels where possible. Shape suffixes as in model.py."""

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from slipway_trainer import flex

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

#: Number of elements added to a head for a sink: kernels require head sizes that are multiples of 8.
_ELEMENTS = 8


def attend(
    q_BHLE: Tensor,
    k_BKLE: Tensor,
    v_BKLE: Tensor,
    mask_LL: "Tensor | BlockMask | None",
    scale: float,
    *,
    softcap: float | None = None,
    sinks_H: Tensor | None = None,
) -> Tensor:
    """Attention output. `mask_LL`: as in Attention; `scale`: factor of the scores. The head size of values may differ from that of queries
    and keys."""
    if mask_LL is not None and not isinstance(mask_LL, Tensor):
        return flex.attend(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale, softcap, sinks_H)
    if softcap is not None:
        assert mask_LL is not None
        return _capped(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale, softcap, sinks_H)
    if sinks_H is not None:
        return _with_sinks(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale, sinks_H)
    return _fused(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale)


def _fused(q_BHLE: Tensor, k_BKLE: Tensor, v_BKLE: Tensor, mask_LL: Tensor | None, scale: float) -> Tensor:
    if mask_LL is not None:
        # PyTorch's memory-efficient kernel supports a mask, but not together with GQA (sdp_utils.cpp); the fallback would materialize all
        # scores.
        k_BKLE, v_BKLE = _repeated(k_BKLE, q_BHLE.size(1)), _repeated(v_BKLE, q_BHLE.size(1))
    return F.scaled_dot_product_attention(
        q_BHLE,
        k_BKLE,
        v_BKLE,
        attn_mask=mask_LL,
        is_causal=mask_LL is None,
        scale=scale,
        enable_gqa=q_BHLE.size(1) != k_BKLE.size(1),
    )


def _repeated(x_BKLE: Tensor, heads: int) -> Tensor:
    """Repeats the key or value heads (K) for each query head (H) of their group."""
    groups = heads // x_BKLE.size(1)
    return x_BKLE if groups == 1 else x_BKLE.repeat_interleave(groups, 1)


def _with_sinks(q_BHLE: Tensor, k_BKLE: Tensor, v_BKLE: Tensor, mask_LL: Tensor | None, scale: float, sinks_H: Tensor) -> Tensor:
    """Attention with sinks: each head has an additional logit that takes part in the softmax and has no value.

    The sink is implemented as one more position at the beginning, whose value is zero. Queries get an additional element that contains the
    sink; the corresponding element of keys is one at that position and zero elsewhere. Therefore scores need not be materialized, and the
    heads of a group share the position. Values are padded as well, because FlashAttention requires equal head sizes.
    """
    size, of_values = q_BHLE.size(-1), v_BKLE.size(-1)
    sinks_BHL1 = (sinks_H / scale).to(q_BHLE.dtype)[None, :, None, None].expand(*q_BHLE.shape[:3], 1)
    q_BHLE = F.pad(torch.cat((q_BHLE, sinks_BHL1), dim=-1), (0, _ELEMENTS - 1, 1, 0))
    first_E = k_BKLE.new_zeros(size + _ELEMENTS)
    first_E[size] = 1.0
    k_BKLE = torch.cat((first_E.expand(*k_BKLE.shape[:2], 1, -1), F.pad(k_BKLE, (0, _ELEMENTS))), dim=2)
    v_BKLE = F.pad(v_BKLE, (0, _ELEMENTS, 1, 0))
    mask_LL = None if mask_LL is None else F.pad(mask_LL, (1, 0, 1, 0))
    return _fused(q_BHLE, k_BKLE, v_BKLE, mask_LL, scale)[:, :, 1:, :of_values]


def _capped(
    q_BHLE: Tensor,
    k_BKLE: Tensor,
    v_BKLE: Tensor,
    mask_LL: Tensor,
    scale: float,
    cap: float,
    sinks_H: Tensor | None,
) -> Tensor:
    """Attention with soft-capped scores, cap * tanh(score / cap). PyTorch has no fused kernel for it, so the scores are materialized."""
    k_BHLE, v_BHLE = _repeated(k_BKLE, q_BHLE.size(1)), _repeated(v_BKLE, q_BHLE.size(1))
    scores_BHLL = (q_BHLE @ k_BHLE.transpose(2, 3)) * scale
    scores_BHLL = torch.tanh(scores_BHLL / cap) * cap
    scores_BHLL = scores_BHLL.float() + mask_LL
    if sinks_H is not None:
        sinks_BHL1 = sinks_H.float()[None, :, None, None].expand(*scores_BHLL.shape[:3], 1)
        scores_BHLL = torch.cat((scores_BHLL, sinks_BHL1), dim=-1)
    weights_BHLL = scores_BHLL.softmax(-1)[..., : k_BHLE.size(2)].to(q_BHLE.dtype)
    return weights_BHLL @ v_BHLE
