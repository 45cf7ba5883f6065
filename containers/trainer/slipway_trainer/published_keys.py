"""Keys that the config.json of every family has. No PyTorch here."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway_trainer.architecture import Architecture

_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PublishedFamily:
    """How the config.json of one `model_type` describes a shape."""

    #: Class of transformers.
    architecture: str
    #: What config.json says of a shape; an import must agree with it.
    describe: Callable[[Architecture], dict[str, Any]]
    #: Parts that every model of the family has, and those that some have, in the words of parts_of().
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    #: What transformers takes where a key is missing and DEFAULTS does not say it.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: What else an export says.
    exported: Mapping[str, Any] = field(default_factory=dict)
    #: Keys for which null says something.
    nullable: tuple[str, ...] = ()
    #: The keys of a config.json that say the same as others, in the words of `describe`.
    reads: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _config: {}
    #: Whether the sizes of a shape with these parts are possible.
    fits: Callable[[Architecture], bool] = lambda _shape: True

    def has(self, shape: Architecture) -> bool:
        """Whether models of the family have just the parts of a shape: config.json then says all of it."""
        return shape.gated_mlp and {*self.required} <= parts_of(shape) <= {*self.required, *self.optional} and self.fits(shape)


def parts_of(shape: Architecture) -> set[str]:
    """Names of the parts that a shape has, experts among them."""
    return {*shape.parts(), *(["experts"] if shape.experts else [])}


def same(given: Any, wanted: Any) -> bool:
    """Whether two values of a config.json are equal. Sizes are exact; a fraction may have been rounded on its way."""
    numbers = all(isinstance(value, (int, float)) for value in (given, wanted))
    if numbers and any(isinstance(value, float) for value in (given, wanted)):
        return math.isclose(given, wanted, rel_tol=_TOLERANCE)
    return given == wanted


def stated(config: Mapping[str, Any]) -> dict[str, Any]:
    """Without the keys that have no effect."""
    return {key: value for key, value in config.items() if value is not None}


def common(shape: Architecture) -> dict[str, Any]:
    """What every config.json says of a shape."""
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
    """What every config.json says of a shape, with SiLU as activation."""
    return common(shape) | {"hidden_act": "silu"}


def layer_types(shape: Architecture) -> list[str]:
    """`layer_types` of config.json: the kind of attention of each layer."""
    return ["sliding_attention" if shape.has_window(layer) else "full_attention" for layer in range(shape.layers)]
