"""config.json of families that have more than Llama's parts: what an export says and what an import must agree with. No PyTorch here."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.rope_scaling import published_rope_scaling

#: What transformers takes where a config.json of a family does not have a key; a key that is in neither place is compared with null.
_DEFAULTS: Mapping[str, Any] = {
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "hidden_act": "silu",
    "mlp_only_layers": [],
    "norm_topk_prob": False,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
}
_GEMMA_DEFAULTS: Mapping[str, Any] = {"tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256}
_TOLERANCE = 1e-6


def same(given: Any, wanted: Any) -> bool:
    """Whether two values of a config.json are equal. Sizes are exact; a fraction may have been rounded on its way."""
    numbers = all(isinstance(value, (int, float)) for value in (given, wanted))
    if numbers and any(isinstance(value, float) for value in (given, wanted)):
        return math.isclose(given, wanted, rel_tol=_TOLERANCE)
    return given == wanted


def stated(config: Mapping[str, Any]) -> dict[str, Any]:
    """Without the keys that say nothing."""
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


def _silu(shape: Architecture) -> dict[str, Any]:
    return common(shape) | {"hidden_act": "silu"}


def _qwen2(shape: Architecture) -> dict[str, Any]:
    return _silu(shape) | {"use_sliding_window": False}


def _qwen3(shape: Architecture) -> dict[str, Any]:
    return _qwen2(shape) | {"head_dim": shape.head_size, "attention_bias": shape.attention_bias}


def _qwen3_moe(shape: Architecture) -> dict[str, Any]:
    return _qwen3(shape) | {
        "num_experts": shape.experts,
        "num_experts_per_tok": shape.experts_per_token,
        "moe_intermediate_size": shape.expert_inner_size,
        "norm_topk_prob": shape.normalises_routing,
        "decoder_sparse_step": 1,
        "mlp_only_layers": list(shape.dense_layers),
    }


def _olmo2(shape: Architecture) -> dict[str, Any]:
    return _silu(shape) | {"attention_bias": shape.attention_bias}


def _gemma(shape: Architecture) -> dict[str, Any]:
    return common(shape) | {"head_dim": shape.head_size, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": shape.attention_bias}


def _gemma_windows(shape: Architecture) -> dict[str, Any]:
    windowed = ["sliding_attention" if shape.has_window(layer) else "full_attention" for layer in range(shape.layers)]
    scale = shape.family.attention_scale or shape.head_size**-0.5
    return _gemma(shape) | {
        "sliding_window": shape.window.size if shape.window is not None else None,
        "layer_types": windowed,
        "query_pre_attn_scalar": round(scale**-2),
        "attn_logit_softcapping": shape.attention_softcap,
        "final_logit_softcapping": shape.final_softcap,
    }


def _gemma3(shape: Architecture) -> dict[str, Any]:
    return _gemma_windows(shape) | {"rope_local_base_freq": shape.family.local_rope_theta}


#: `model_type` -> (class of transformers, what its config.json says of a shape).
FAMILIES: Mapping[str, tuple[str, Callable[[Architecture], dict[str, Any]]]] = {
    "gemma": ("GemmaForCausalLM", _gemma),
    "gemma2": ("Gemma2ForCausalLM", _gemma_windows),
    "gemma3_text": ("Gemma3ForCausalLM", _gemma3),
    "olmo2": ("Olmo2ForCausalLM", _olmo2),
    "qwen2": ("Qwen2ForCausalLM", _qwen2),
    "qwen3": ("Qwen3ForCausalLM", _qwen3),
    "qwen3_moe": ("Qwen3MoeForCausalLM", _qwen3_moe),
}


_GEMMA_PARTS = ("embeddingScale", "norm rms-offset", "activation gelu-tanh")
_GEMMA_OPTIONAL = ("attentionBias", "slidingWindow", "logitSoftcap", "attentionScale")
#: Parts that every model of a family has, and those that some have, in the words of _parts().
_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gemma": (_GEMMA_PARTS, ("attentionBias",)),
    "gemma2": ((*_GEMMA_PARTS, "normPlacement sandwich"), _GEMMA_OPTIONAL),
    "gemma3_text": ((*_GEMMA_PARTS, "normPlacement sandwich", "qkNorm"), _GEMMA_OPTIONAL),
    "olmo2": (("qkNorm", "normPlacement post"), ("attentionBias",)),
    "qwen2": (("attentionBias",), ()),
    "qwen3": (("qkNorm",), ("attentionBias",)),
    "qwen3_moe": (("qkNorm", "experts"), ("attentionBias", "expertFfnHiddenSize", "denseLayers", "routing")),
}


def _parts(shape: Architecture) -> set[str]:
    return {*shape.parts(), *(["experts"] if shape.experts else [])}


def is_of_family(shape: Architecture) -> bool:
    """Whether models of the shape's family, one of FAMILIES, have just these parts: its config.json then says all of the shape."""
    if shape.family.model_type not in _PARTS:
        return False
    required, optional = _PARTS[shape.family.model_type]
    return shape.gated_mlp and {*required} <= _parts(shape) <= {*required, *optional}


def family_config(shape: Architecture, longest_context: int) -> dict[str, Any]:
    """config.json of a shape of one of FAMILIES."""
    architecture, describe = FAMILIES[shape.family.model_type]
    found = describe(shape) | {"max_position_embeddings": longest_context}
    return {"model_type": shape.family.model_type, "architectures": [architecture]} | stated(found)


def family_issues(config: Mapping[str, Any], shape: Architecture) -> list[str]:
    """What the config.json of published weights says of the model and the run does not, by its keys."""
    _architecture, describe = FAMILIES[config["model_type"]]
    wanted = describe(shape)
    theta, scaling, beyond = published_rope_scaling(_of_all_layers(config))
    defaults = {**_DEFAULTS, **(_GEMMA_DEFAULTS if config["model_type"].startswith("gemma") else {})}
    given = {**defaults, **{key: value for key, value in config.items() if value is not None}}
    given |= {"rope_theta": theta, "rope_scaling": scaling.published() if scaling is not None else None}
    given |= _local_theta(config)
    names = [key for key in wanted if not same(given.get(key), wanted[key]) and key in (*given, *_NAMED)]
    issues = [f"model: must have {key} {given.get(key)} as in config.json of the weights, got {wanted[key]}" for key in names]
    kind, parts = config["model_type"], _parts(shape)
    issues += [f"model: must have {part} as all models of model_type {kind} do" for part in _PARTS[kind][0] if part not in parts]
    return issues + ([f"model.weights: must be a model that the built-in trainer computes, got {beyond} in config.json"] if beyond else [])


#: Keys that must be there.
_NAMED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def _of_all_layers(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rotary positions may be given for layers with and without a window apart."""
    rope = config.get("rope_parameters") or {}
    return {**config, "rope_parameters": rope["full_attention"]} if "full_attention" in rope else config


def _local_theta(config: Mapping[str, Any]) -> dict[str, Any]:
    """Theta of layers with a window, which newer files have among `rope_parameters`."""
    local = (config.get("rope_parameters") or {}).get("sliding_attention")
    return {"rope_local_base_freq": local["rope_theta"]} if local else {}
