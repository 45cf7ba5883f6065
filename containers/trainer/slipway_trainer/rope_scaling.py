"""Scaling of rotary positions for contexts longer than those of pre-training: the settings of `model.ropeScaling` in job.json.

The types are those of `rope_parameters` in Hugging Face's configurations: linear, llama3 and yarn. Does not import PyTorch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway_trainer.architecture_parts import read_fields

#: Required fields of each type, and optional ones; files with others are refused before a launch.
NEEDED = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings"),
}
ALLOWED = {"yarn": ("beta_fast", "beta_slow", "attention_factor", "truncate", "mscale", "mscale_all_dim")}


@dataclass(frozen=True)
class RopeScaling:
    """A scaling of rotary frequencies; the fields are those of `rope_parameters` in a config.json."""

    kind: str
    factor: float
    original_max_position_embeddings: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    #: Factor of cosine and sine; None = 0.1 ln(factor) + 1, as recommended in the YaRN paper.
    attention_factor: float | None = None
    truncate: bool = True
    #: DeepSeek's parameters: the factor of cosine and sine is the quotient of their magnitudes, that of latent attention scores the square
    #: of the second one.
    mscale: float | None = None
    mscale_all_dim: float | None = None

    @property
    def table_factor(self) -> float:
        """The factor of cosine and sine."""
        if self.kind != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return self._magnitude(self.mscale) / self._magnitude(self.mscale_all_dim)
        return self._magnitude(1.0)

    @property
    def score_factor(self) -> float:
        """The factor of the scores of latent attention."""
        return self._magnitude(self.mscale_all_dim or 0.0) ** 2

    def _magnitude(self, scale: float) -> float:
        return 0.1 * scale * math.log(self.factor) + 1.0


def read_rope_scaling(raw: Mapping[str, Any] | None) -> RopeScaling | None:
    """Reads `model.ropeScaling` of job.json, which is checked before a launch."""
    return read_fields(RopeScaling, raw, kind=raw["type"]) if raw else None
