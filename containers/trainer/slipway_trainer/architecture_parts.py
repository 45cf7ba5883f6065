"""Parts of an architecture with several fields, named as in `model` of job.json. Does not import PyTorch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

T = TypeVar("T")


def read_fields(kind: type[T], raw: Mapping[str, Any], /, **others: Any) -> T:
    """A dataclass with the values of job.json that have the names of its fields in camel case; fields without one keep their defaults."""
    given = {}
    for field in fields(kind):
        first, *rest = field.name.split("_")
        value = raw.get(first + "".join(word.capitalize() for word in rest))
        if value is not None and field.name not in others:
            given[field.name] = float(value) if isinstance(field.default, float) else value
    return kind(**given, **others)


@dataclass(frozen=True)
class Temperature:
    """Position-dependent scale of the queries (Llama 4; arXiv 2501.19399)."""

    scale: float
    floor: int


@dataclass(frozen=True)
class Family:
    """Properties of specific model families: the fields of `model.family`."""

    model_type: str = ""
    #: "rms", or "rms-offset": the weights of norms are offsets from one (Gemma).
    norm: str = "rms"
    #: Span of the norm of queries and keys: "head", "whole" (the whole projection, OLMo 2), or "weightless" (each head, without weights).
    qk_norm: str = "head"
    #: Bias of the output projection of attention; None = as attention_bias.
    output_bias: bool | None = None
    #: None = silu for a gated MLP, gelu otherwise.
    activation: str | None = None
    #: Factor of the attention scores; None = 1 / sqrt(head_size).
    attention_scale: float | None = None
    #: Theta of the rotary positions in layers with a window; None = as in all layers.
    local_rope_theta: float | None = None
    #: Rotary positions apply to neighboring elements of a head instead of its two halves.
    interleaved_rope: bool = False
    #: Biases of all projections of an expert, and of the router.
    expert_bias: bool = False
    router_bias: bool = False
    #: Queries of layers without rotary positions are multiplied by 1 + scale * ln(1 + floor((position + 1) / floor)).
    temperature: Temperature | None = None
    #: The output of the shared experts is multiplied by a sigmoid of the token.
    shared_expert_gate: bool = False


@dataclass(frozen=True)
class Window:
    """A sliding window of the last `size` positions, including the query's own, or chunks of `size` positions."""

    size: int
    #: "all", "alternate" (the first layer has a window), or layer indices.
    pattern: str | tuple[int, ...]
    chunked: bool = False

    def has(self, layer: int) -> bool:
        """Whether this layer (from 0) has the window."""
        if self.pattern == "all":
            return True
        return layer % 2 == 0 if self.pattern == "alternate" else layer in self.pattern


def read_window(raw: Mapping[str, Any] | None, chunk: Mapping[str, Any] | None) -> Window | None:
    """Reads the window. `chunk`: `attentionChunk` of the family."""
    if chunk:
        return Window(int(chunk["size"]), tuple(chunk["layers"]), chunked=True)
    if not raw:
        return None
    pattern = raw.get("pattern", "all")
    return Window(int(raw["size"]), tuple(pattern) if isinstance(pattern, list) else str(pattern))


@dataclass(frozen=True)
class Latent:
    """Sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): two ranks, and the sizes of one head."""

    kv_rank: int
    nope_head_size: int
    rope_head_size: int
    value_head_size: int
    #: None = queries are projected directly.
    q_rank: int | None = None

    @property
    def head_size(self) -> int:
        """Size of a head of queries and keys."""
        return self.nope_head_size + self.rope_head_size


@dataclass(frozen=True)
class Routing:
    """How tokens are assigned to experts, and how expert outputs are weighted."""

    #: Function of the router logits before the top-k: softmax or sigmoid.
    score: str = "softmax"
    #: The weights of the chosen experts are divided by their sum.
    normalises: bool = True
    #: A bias per expert is added only for the choice of experts (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
    has_bias: bool = False
    #: Number of groups of experts; a token may use experts of `top_groups` groups.
    groups: int = 1
    top_groups: int = 1
    #: Number of highest expert scores that are summed to the score of a group: 1 (DeepSeek-V2) or 2 (V3).
    deciding_experts: int = 2
    #: Factor of the final weights.
    scaling: float = 1.0
    #: The weight multiplies the input of an expert instead of its output (Llama 4).
    weighs_inputs: bool = False


def read_routing(raw: Mapping[str, Any] | None, family: Mapping[str, Any]) -> Routing:
    """Reads the routing from job.json and fills in defaults."""
    values = raw or {}
    return read_fields(
        Routing,
        values,
        normalises=bool(values.get("normalise", True)),
        has_bias=bool(values.get("bias", False)),
        top_groups=int(values.get("topGroups") or values.get("groups") or 1),
        deciding_experts=1 if family.get("groupScore") == "best" else 2,
        scaling=float(family.get("routedScaling", 1.0)),
        weighs_inputs=bool(family.get("weighsExpertInputs", False)),
    )


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
