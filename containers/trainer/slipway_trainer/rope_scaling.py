"""Scaling of rotary positions for contexts longer than those of pre-training: parses and writes the settings of run files and config.json.

The types are those of `rope_parameters` in Hugging Face's configurations: linear, llama3 and yarn. Does not import PyTorch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

#: Required fields of each type, and optional ones.
NEEDED = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings"),
}
ALLOWED = {"yarn": ("beta_fast", "beta_slow", "attention_factor", "truncate", "mscale", "mscale_all_dim")}
#: Default theta of transformers for a config.json without one; 10,000 for other families.
_DEFAULT_THETA = {"mixtral": 1e6, "gemma3_text": 1e6, "gpt_oss": 150_000.0, "llama4_text": 500_000.0}
#: Default scaling of families for a config.json with neither `rope_parameters` nor `rope_scaling`.
_DEFAULT_SCALING: Mapping[str, Mapping[str, Any]] = {
    "gpt_oss": {"rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096},
}


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

    def published(self) -> dict[str, Any]:
        """The value of `rope_scaling` in config.json."""
        names = (*NEEDED[self.kind], *ALLOWED.get(self.kind, ()))
        values = {name: getattr(self, name) for name in names}
        return {"rope_type": self.kind} | {name: value for name, value in values.items() if value is not None}


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


def unscaled(model_type: str, scaling: RopeScaling | None) -> dict[str, Any]:
    """The keys of config.json that disable the default scaling of a family for a model without scaling."""
    return {"rope_scaling": {"rope_type": "default"}} if scaling is None and model_type in _DEFAULT_SCALING else {}


def published_rope_scaling(config: Mapping[str, Any]) -> "tuple[float, RopeScaling | None, str]":
    """(theta, scaling, unsupported feature or "") of a config.json with `rope_parameters`, or with `rope_theta` and `rope_scaling`."""
    usual = _DEFAULT_SCALING.get(str(config.get("model_type")), {})
    raw = dict(config.get("rope_parameters") or config.get("rope_scaling") or usual)
    theta = float(raw.pop("rope_theta", None) or config.get("rope_theta") or _DEFAULT_THETA.get(config.get("model_type"), 10_000.0))
    partial = raw.pop("partial_rotary_factor", None) or config.get("partial_rotary_factor") or 1.0
    kind = str(raw.pop("rope_type", None) or raw.pop("type", None) or "default")
    raw.pop("type", None)
    if partial != 1.0:
        return theta, None, f"partial_rotary_factor {partial}"
    if kind == "default":
        return theta, None, ""
    if kind not in NEEDED:
        return theta, None, f"rope_type {kind}"
    if kind != "linear":
        # The default of transformers is the model's longest context.
        raw.setdefault("original_max_position_embeddings", config.get("max_position_embeddings"))
    names = {field.name for field in fields(RopeScaling)} & {*NEEDED[kind], *ALLOWED.get(kind, ())}
    other = sorted(name for name, value in raw.items() if name not in names and value is not None)
    missing = sorted(name for name in NEEDED[kind] if raw.get(name) is None)
    if other or missing:
        return theta, None, f"rope_type {kind} with {', '.join(other)}" if other else f"rope_type {kind} without {', '.join(missing)}"
    return theta, RopeScaling(kind, **{name: raw[name] for name in names if raw.get(name) is not None}), ""
