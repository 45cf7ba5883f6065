"""Rotary positions for contexts longer than those of pre-training: settings, in the run file's words and in those of config.json.

The kinds are those of `rope_parameters` in Hugging Face's configurations: linear, llama3 and yarn. No PyTorch here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

#: Fields that each kind must have, and those that it may have.
NEEDED = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings"),
}
ALLOWED = {"yarn": ("beta_fast", "beta_slow", "attention_factor", "truncate", "mscale", "mscale_all_dim")}
#: What transformers takes where a config.json has no theta; 10,000 for other families.
_DEFAULT_THETA = {"mixtral": 1e6, "gpt_oss": 150_000.0}
#: And of families that scale where a config.json has neither `rope_parameters` nor `rope_scaling`.
_DEFAULT_SCALING: Mapping[str, Mapping[str, Any]] = {
    "gpt_oss": {"rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096},
}


@dataclass(frozen=True)
class RopeScaling:
    """One way to change rotary frequencies; the fields are those of `rope_parameters` in a config.json."""

    kind: str
    factor: float
    original_max_position_embeddings: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    #: What cosine and sine are multiplied by; None = 0.1 ln(factor) + 1, as the YaRN paper recommends.
    attention_factor: float | None = None
    truncate: bool = True
    #: DeepSeek's two: cosine and sine are multiplied by the quotient of their factors, scores of latent attention by the second squared.
    mscale: float | None = None
    mscale_all_dim: float | None = None

    @property
    def table_factor(self) -> float:
        """What cosine and sine are multiplied by."""
        if self.kind != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return self._magnitude(self.mscale) / self._magnitude(self.mscale_all_dim)
        return self._magnitude(1.0)

    @property
    def score_factor(self) -> float:
        """What scores of latent attention are multiplied by."""
        return self._magnitude(self.mscale_all_dim or 0.0) ** 2

    def _magnitude(self, scale: float) -> float:
        return 0.1 * scale * math.log(self.factor) + 1.0

    def published(self) -> dict[str, Any]:
        """As config.json has it under `rope_scaling`."""
        names = (*NEEDED[self.kind], *ALLOWED.get(self.kind, ()))
        values = {name: getattr(self, name) for name in names}
        return {"rope_type": self.kind} | {name: value for name, value in values.items() if value is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def read_rope_scaling(raw: Mapping[str, Any] | None, issues: list[str]) -> RopeScaling | None:
    """`model.ropeScaling` of job.json."""
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
    if found.kind == "llama3" and found.high_freq_factor <= found.low_freq_factor:
        issues.append(f"{at}.highFreqFactor: must be greater than lowFreqFactor {found.low_freq_factor}, got {found.high_freq_factor}")
    return found


def unscaled(model_type: str, scaling: RopeScaling | None) -> dict[str, Any]:
    """What config.json must say of a model without scaling whose family scales unless told otherwise."""
    return {"rope_scaling": {"rope_type": "default"}} if scaling is None and model_type in _DEFAULT_SCALING else {}


def published_rope_scaling(config: Mapping[str, Any]) -> "tuple[float, RopeScaling | None, str]":
    """(theta, scaling, what this trainer cannot do or "") of a config.json: `rope_parameters`, or `rope_theta` and `rope_scaling`."""
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
        # Where a configuration does not say it, transformers takes the model's longest context.
        raw.setdefault("original_max_position_embeddings", config.get("max_position_embeddings"))
    names = {field.name for field in fields(RopeScaling)} & {*NEEDED[kind], *ALLOWED.get(kind, ())}
    other = sorted(name for name, value in raw.items() if name not in names and value is not None)
    missing = sorted(name for name in NEEDED[kind] if raw.get(name) is None)
    if other or missing:
        return theta, None, f"rope_type {kind} with {', '.join(other)}" if other else f"rope_type {kind} without {', '.join(missing)}"
    return theta, RopeScaling(kind, **{name: raw[name] for name in names if raw.get(name) is not None}), ""
