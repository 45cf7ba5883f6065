"""Scaling of rotary positions for contexts longer than those of pre-training: the settings of `model.ropeScaling` in job.json.

The types are those of `rope_parameters` in Hugging Face's configurations: linear, llama3 and yarn. Does not import PyTorch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Required fields of each type, and optional ones.
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


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def read_rope_scaling(raw: Mapping[str, Any] | None, issues: list[str]) -> RopeScaling | None:
    """Parses `model.ropeScaling` of job.json; adds errors to `issues`."""
    if not raw:
        return None
    kind = str(raw.get("type"))
    at = "model.ropeScaling"
    if kind not in NEEDED:
        issues.append(f"{at}.type: must be {' or '.join(NEEDED)}, got {kind}")
        return None
    known = {_camel(name): name for name in (*NEEDED[kind], *ALLOWED.get(kind, ()))}
    issues += [f"{at}.{key}: must be left out for type {kind}, got {raw[key]}" for key in raw if key not in known and key != "type"]
    missing = [key for key, name in known.items() if name in NEEDED[kind] and raw.get(key) is None]
    issues += [f"{at}.{key}: must be given for type {kind}" for key in missing]
    if missing:
        return None
    return _checked(RopeScaling(kind, **{name: raw[key] for key, name in known.items() if raw.get(key) is not None}), at, issues)


def _checked(found: RopeScaling, at: str, issues: list[str]) -> RopeScaling:
    if found.factor < 1:
        issues.append(f"{at}.factor: must be at least 1, got {found.factor}")
    if found.kind == "llama3" and found.high_freq_factor < found.low_freq_factor:
        issues.append(f"{at}.highFreqFactor: must be at least lowFreqFactor {found.low_freq_factor}, got {found.high_freq_factor}")
    return found
