"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): the keys and values of all heads are projected from a
compressed vector per token, optionally the queries as well. Rotary positions apply to a part of each query head, and to a part of the keys
that all heads share.

Shape suffixes as in model.py; N elements of a head without rotary positions, R elements with them, C size of the compressed vector.
"""

import torch
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.attend import attend, own_part
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.norms import RmsNorm
from slipway_trainer.rope import rotate
from slipway_trainer.sharding import own

#: Epsilon of the norms between two projections; config.json has no key for it.
_EPSILON = 1e-6


class LatentAttention(nn.Module):
    """The attention of one layer. Submodules have their published names."""

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
        q_BHLN, q_BHLR = _heads(self._queries(x_BLD), latent.head_size).split((latent.nope_head_size, latent.rope_head_size), dim=-1)
        compressed_BLC, k_BLR = self.kv_a_proj_with_mqa(x_BLD).split((latent.kv_rank, latent.rope_head_size), dim=-1)
        both_BHLE = _heads(self.kv_b_proj(self.kv_a_layernorm(compressed_BLC)), latent.nope_head_size + latent.value_head_size)
        k_BHLN, v_BHLE = both_BHLE.split((latent.nope_head_size, latent.value_head_size), dim=-1)
        k_BHLR = rotate(own(k_BLR).unsqueeze(1), cos_LR, sin_LR, self.interleaved).expand(-1, k_BHLN.size(1), -1, -1)
        q_BHLE = torch.cat((q_BHLN, rotate(q_BHLR, cos_LR, sin_LR, self.interleaved)), dim=-1)
        k_BHLE = torch.cat((k_BHLN, k_BHLR), dim=-1)
        mix = attend if self.context is None else self.context.attend
        mixed_BHLE = mix(q_BHLE, k_BHLE, v_BHLE, mask_LL, self.scale, softcap=self.softcap, sinks_H=own_part(self.sinks))
        return self.o_proj(mixed_BHLE.transpose(1, 2).flatten(2))

    def _queries(self, x_BLD: Tensor) -> Tensor:
        if self.latent.q_rank is None:
            return self.q_proj(x_BLD)
        return self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x_BLD)))


def _heads(x_BLX: Tensor, size: int) -> Tensor:
    return x_BLX.unflatten(-1, (-1, size)).transpose(1, 2)
