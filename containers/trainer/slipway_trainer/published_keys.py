"""Keys that are common to the config.json of all families. Does not import PyTorch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway_trainer.architecture import Architecture

_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PublishedFamily:
    """How the config.json of a `model_type` describes an architecture."""

    #: Class name in transformers.
    architecture: str
    #: The keys that describe an architecture; an import must match them.
    describe: Callable[[Architecture], dict[str, Any]]
    #: Parts that all models of the family have, and parts that some have, as named by parts_of().
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    #: Defaults of transformers for missing keys, in addition to _DEFAULTS of published_families.py.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: Additional keys of an export.
    exported: Mapping[str, Any] = field(default_factory=dict)
    #: Keys for which null is a meaningful value.
    nullable: tuple[str, ...] = ()
    #: Converts equivalent keys of a config.json to those of `describe`.
    reads: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _config: {}
    #: Whether the sizes of an architecture are possible.
    fits: Callable[[Architecture], bool] = lambda _shape: True
    gated: bool = True

    def has(self, shape: Architecture) -> bool:
        """Whether models of the family have exactly the parts of the architecture, so that config.json describes it completely."""
        parts, required = parts_of(shape), {*self.required}
        return shape.gated_mlp == self.gated and required <= parts <= {*required, *self.optional} and self.fits(shape)


def parts_of(shape: Architecture) -> set[str]:
    """Names of the parts of an architecture, including "experts"."""
    return {*shape.parts(), *(["experts"] if shape.experts else [])}


def same(given: Any, wanted: Any) -> bool:
    """Whether two values of a config.json are equal. Integers are compared exactly, floats with a tolerance for rounding."""
    numbers = all(isinstance(value, (int, float)) for value in (given, wanted))
    if numbers and any(isinstance(value, float) for value in (given, wanted)):
        return math.isclose(given, wanted, rel_tol=_TOLERANCE)
    return given == wanted


def stated(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config without keys whose value is None."""
    return {key: value for key, value in config.items() if value is not None}


def common(shape: Architecture) -> dict[str, Any]:
    """The keys of an architecture that are common to all families."""
    return {
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.ffn_hidden_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.attention_heads,
        "num_key_value_heads": shape.kv_heads,
        "vocab_size": shape.vocabulary_size,
        "rms_norm_eps": shape.norm_epsilon,
        "tie_word_embeddings": shape.tied_embeddings,
        "rope_theta": shape.rope_theta,
        "rope_scaling": shape.rope_scaling.published() if shape.rope_scaling is not None else None,
    }


def with_silu(shape: Architecture) -> dict[str, Any]:
    """The common keys, with SiLU as the activation."""
    return common(shape) | {"hidden_act": "silu"}


def layer_types(shape: Architecture) -> list[str]:
    """`layer_types` of config.json: the attention type of each layer."""
    return ["sliding_attention" if shape.has_window(layer) else "full_attention" for layer in range(shape.layers)]
