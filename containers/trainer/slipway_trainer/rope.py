"""Rotary positions: inverse frequencies with scaling, and the tables of cosine and sine. Shape suffixes as in model.py.

The formulas are those of Hugging Face's modeling_rope_utils.py, with which tests compare the logits: Llama 3.1's scaling, YaRN (arXiv
2309.00071) and linear position interpolation (arXiv 2306.15595).
"""

import math

import torch
from torch import Tensor

from slipway_trainer.architecture_parts import RopeScaling, Temperature


def inverse_frequencies(head_size: int, theta: float, scaling: RopeScaling | None, device: torch.device) -> tuple[Tensor, float]:
    """Inverse frequencies (E / 2) in float32, and the factor of cosine and sine."""
    exponents = torch.arange(0, head_size, 2, dtype=torch.float32, device=device) / head_size
    plain = 1.0 / theta**exponents
    if scaling is None:
        return plain, 1.0
    if scaling.kind == "linear":
        return plain / scaling.factor, 1.0
    if scaling.kind == "llama3":
        return _llama3(plain, scaling), 1.0
    return _yarn(plain, head_size, theta, scaling), scaling.table_factor


def _llama3(plain: Tensor, scaling: RopeScaling) -> Tensor:
    """High frequencies are unchanged, low ones are divided by the factor, with a smooth transition between them.

    Llama 4 Scout has one bound for both, and no transition.
    """
    low, high, length = scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_max_position_embeddings
    turns = length * plain / (2 * math.pi)
    if low == high:
        return torch.where(turns < low, plain / scaling.factor, plain)
    smooth = (turns - low) / (high - low)
    between = (1 - smooth) * plain / scaling.factor + smooth * plain
    return torch.where(turns < low, plain / scaling.factor, torch.where(turns > high, plain, between))


def _yarn(plain: Tensor, head_size: int, theta: float, scaling: RopeScaling) -> Tensor:
    """Dimensions with many rotations in the original context are unchanged, those with few are interpolated, with a linear ramp between
    them."""

    def dimension(turns: float) -> float:
        return head_size * math.log(scaling.original_max_position_embeddings / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = dimension(scaling.beta_fast), dimension(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_size - 1)
    if first == last:
        last += 0.001
    ramp = ((torch.arange(plain.numel(), dtype=torch.float32, device=plain.device) - first) / (last - first)).clamp(0, 1)
    return plain / scaling.factor * ramp + plain * (1 - ramp)


def rope_tables(positions_L: Tensor, head_size: int, theta: float, scaling: RopeScaling | None = None) -> tuple[Tensor, Tensor]:
    """Cosine and sine of rotary positions, each (L, E), in float32. Positions of shape (B, 1, L) give (B, 1, L, E)."""
    frequencies, factor = inverse_frequencies(head_size, theta, scaling, positions_L.device)
    angles = positions_L.float()[..., None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos() * factor, angles.sin() * factor


def temperatures(positions_L: Tensor, found: Temperature) -> Tensor:
    """The factor of queries in layers without rotary positions, in float32."""
    return 1.0 + found.scale * torch.log1p(torch.floor((positions_L.float() + 1.0) / found.floor))


def rotate(x_BHLE: Tensor, cos_LE: Tensor | None, sin_LE: Tensor | None, interleaved: bool = False) -> Tensor:
    """Applies rotary positions to the two halves of a head (the layout of published Llama weights); returns the input without tables.

    `interleaved`: the weights pair neighboring elements. They are reordered to halves for queries and keys, which does not change the
    scores.
    """
    if cos_LE is None or sin_LE is None:
        return x_BHLE
    if interleaved:
        x_BHLE = x_BHLE.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
    first, second = x_BHLE.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (x_BHLE * cos_LE + turned * sin_LE).to(x_BHLE.dtype)
