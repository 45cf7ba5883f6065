"""config.json of published weights: checks for imports, and the content for exports. Does not import PyTorch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.published_families import FAMILIES, family_config, family_issues, is_of_family
from slipway_trainer.published_keys import common, same, stated
from slipway_trainer.rope_scaling import published_rope_scaling

#: Families that consist only of Llama's blocks; published_families.py has the others.
PLAIN_FAMILIES = ("llama", "mistral", "mixtral")
#: `model_type` of an export that no library supports: a plain MLP with Llama's attention.
OWN_FAMILY = "slipway-plain-mlp"
#: `model_type` of an export whose combination of parts exists in no published family.
OWN_SHAPE = "slipway"


def _expected(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the run file's architecture that correspond to a config.json, with the defaults of transformers."""
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    theta, scaling, _ = published_rope_scaling(config)
    mixtral = config.get("model_type") == "mixtral"
    experts = config.get("num_local_experts", 8) if mixtral else 0
    return {
        "layers": config.get("num_hidden_layers"),
        "hiddenSize": hidden,
        "attentionHeads": heads,
        "kvHeads": config.get("num_key_value_heads") or heads,
        "headSize": config.get("head_dim") or (hidden // heads if hidden and heads else None),
        "ffnHiddenSize": config.get("intermediate_size"),
        "vocabularySize": config.get("vocab_size"),
        "gatedMlp": config.get("model_type") != OWN_FAMILY,
        "tiedEmbeddings": bool(config.get("tie_word_embeddings", False)),
        "ropeTheta": theta,
        "ropeScaling": scaling,
        "normEpsilon": config.get("rms_norm_eps", 1e-5 if mixtral else 1e-6),
        "experts": experts,
        "expertsPerToken": config.get("num_experts_per_tok", 2) if experts else 0,
    }


def _given(shape: Architecture) -> dict[str, Any]:
    return {
        "layers": shape.layers,
        "hiddenSize": shape.hidden_size,
        "attentionHeads": shape.attention_heads,
        "kvHeads": shape.kv_heads,
        "headSize": shape.head_size,
        "ffnHiddenSize": shape.ffn_hidden_size,
        "vocabularySize": shape.vocabulary_size,
        "gatedMlp": shape.gated_mlp,
        "tiedEmbeddings": shape.tied_embeddings,
        "ropeTheta": shape.rope_theta,
        "ropeScaling": shape.rope_scaling,
        "normEpsilon": shape.norm_epsilon,
        "experts": shape.experts,
        "expertsPerToken": shape.experts_per_token if shape.experts else 0,
    }


def _beyond(config: Mapping[str, Any], shape: Architecture, sequence_length: int) -> list[str]:
    """Features of a published model that this trainer or this architecture does not have."""
    kind = config.get("model_type")
    found = [] if kind in (*PLAIN_FAMILIES, OWN_FAMILY) else [f"model_type {kind} (known: {', '.join((*PLAIN_FAMILIES, *FAMILIES))})"]
    found += ["mlp_bias true"] if config.get("mlp_bias") else []
    if bool(config.get("attention_bias")) != shape.attention_bias:
        found.append("attention_bias true" if config.get("attention_bias") else "no attention_bias")
    if kind in PLAIN_FAMILIES and config.get("hidden_act", "silu") not in ("silu", "swish"):
        found.append(f"hidden_act {config['hidden_act']}")
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    own = shape.window.size if shape.window is not None else None
    if window and window < sequence_length and window != own:
        found.append(f"sliding_window {window} below sequenceLength {sequence_length}")
    if config.get("quantization_config"):
        found.append("quantization_config")
    rope = published_rope_scaling(config)[2]
    return [*found, rope] if rope else found


def config_issues(folder: Path, shape: Architecture, sequence_length: int) -> list[str]:
    """Differences between the config.json of a weights folder and the architecture; empty if the weights fit."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config.get("model_type") in FAMILIES:
            return _of_family(config, shape)
        expected, beyond = _expected(config), _beyond(config, shape, sequence_length)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        return [f"model.weights: must contain a config.json of a Llama, Mistral or Mixtral model, got {error!r}"]
    issues = [f"model.weights: must be a model that the built-in trainer computes, got {what} in config.json" for what in beyond]
    given = _given(shape)
    for name, value in expected.items():
        if not same(value, given[name]) and not (name == "ropeScaling" and beyond):
            issues.append(f"model.architecture.{name}: must be {_text(value)} as in config.json of the weights, got {_text(given[name])}")
    return issues


def _of_family(config: Mapping[str, Any], shape: Architecture) -> list[str]:
    kind = config["model_type"]
    if shape.family.model_type not in ("", kind):
        return [f"model: must be of model_type {kind} as config.json of the weights, got {shape.family.model_type}"]
    issues = family_issues(config, shape)
    if config.get("quantization_config"):
        issues.append("model.weights: must be a model that the built-in trainer computes, got quantization_config in config.json")
    return issues


def _text(value: Any) -> str:
    return json.dumps(value.published()) if hasattr(value, "published") else json.dumps(value)


def longest_context(shape: Architecture, sequence_length: int) -> int:
    """`max_position_embeddings` of an export: the length for which positions are scaled, or the trained length."""
    scaling = shape.rope_scaling
    return max(sequence_length, int(scaling.factor * scaling.original_max_position_embeddings)) if scaling else sequence_length


def published_config(shape: Architecture, sequence_length: int) -> dict[str, Any]:
    """The config.json of an export."""
    if is_of_family(shape):
        return family_config(shape, longest_context(shape, sequence_length))
    mixture = shape.experts > 0
    config = stated(common(shape)) | {
        "model_type": ("mixtral" if mixture else "llama") if shape.gated_mlp else OWN_FAMILY,
        "head_dim": shape.head_size,
        "max_position_embeddings": longest_context(shape, sequence_length),
        "hidden_act": "silu" if shape.gated_mlp else "gelu",
    }
    if shape.gated_mlp:
        config["architectures"] = ["MixtralForCausalLM" if mixture else "LlamaForCausalLM"]
    if shape.attention_bias:
        config["attention_bias"] = True
    if shape.window is not None:
        config |= {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": shape.window.size}
    if not _is_published(shape):
        config = {key: value for key, value in config.items() if key != "architectures"} | {"model_type": OWN_SHAPE}
    return config | ({"num_local_experts": shape.experts, "num_experts_per_tok": shape.experts_per_token} if mixture else {})


def _is_published(shape: Architecture) -> bool:
    """Whether the architecture is possible for Llama, Mistral or Mixtral."""
    plain = shape.gated_mlp and not shape.attention_bias and not shape.experts
    window = shape.window is None or (shape.window.pattern == "all" and plain)
    other = set(shape.parts()) - {"slidingWindow", "attentionBias"}
    return window and not other and not (shape.experts and shape.attention_bias)


def write_config(
    folder: Path,
    shape: Architecture,
    sequence_length: int,
    imported: Path | None = None,
    precision: str = "",
    end_of_turn: int | None = None,
) -> None:
    """Writes config.json of an export: a copy of that in `imported` with the precision of the run, or one generated from the
    architecture. `end_of_turn`: a token that ends the trained turns, at which libraries stop if `eos_token_id` has it."""
    config = published_config(shape, sequence_length)
    if imported is not None:
        config = json.loads((imported / "config.json").read_text(encoding="utf-8"))
        key = "dtype" if "dtype" in config else "torch_dtype"
        config[key] = "float32" if precision == "fp32" else "bfloat16"
    if end_of_turn is not None:
        config["eos_token_id"] = with_end(config.get("eos_token_id"), end_of_turn)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def with_end(given: Any, token: int) -> Any:
    """`eos_token_id` with a token: one id, or a list of several."""
    known = given if isinstance(given, list) else [] if given is None else [given]
    return given if token in known else [*known, token] if known else token
