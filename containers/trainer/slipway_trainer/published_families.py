"""config.json of families with more parts than Llama: the content for exports and the checks for imports. Does not import PyTorch."""

from collections.abc import Mapping
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.published_keys import PublishedFamily, common, layer_types, parts_of, same, stated, with_silu
from slipway_trainer.published_mixtures import MIXTURES
from slipway_trainer.rope_scaling import published_rope_scaling, unscaled

#: Defaults of transformers for missing keys of a family's config.json; keys without a default are compared with null.
_DEFAULTS: Mapping[str, Any] = {
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "hidden_act": "silu",
    "mlp_only_layers": [],
    "norm_topk_prob": False,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
}


def _qwen2(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {"use_sliding_window": False}


def _qwen3(shape: Architecture) -> dict[str, Any]:
    return _qwen2(shape) | {"head_dim": shape.head_size, "attention_bias": shape.attention_bias}


def _olmo2(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {"attention_bias": shape.attention_bias}


def _gemma(shape: Architecture) -> dict[str, Any]:
    return common(shape) | {"head_dim": shape.head_size, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": shape.attention_bias}


def _gemma_windows(shape: Architecture) -> dict[str, Any]:
    return _gemma(shape) | {
        "sliding_window": shape.window.size if shape.window is not None else None,
        "layer_types": layer_types(shape),
        "query_pre_attn_scalar": round(shape.score_scale**-2),
        "attn_logit_softcapping": shape.attention_softcap,
        "final_logit_softcapping": shape.final_softcap,
    }


def _gemma3(shape: Architecture) -> dict[str, Any]:
    local = shape.family.local_rope_theta
    return _gemma_windows(shape) | {"rope_local_base_freq": shape.rope_theta if local is None else local}


def _divides(shape: Architecture) -> bool:
    """The config.json of these families has no head size."""
    return shape.head_size * shape.attention_heads == shape.hidden_size


def _gemma_fits(shape: Architecture) -> bool:
    """The config.json of these families has no key for the scale of embeddings."""
    return same(shape.embedding_scale, shape.hidden_size**0.5)


_GEMMA_PARTS = ("embeddingScale", "norm rms-offset", "activation gelu-tanh")
_GEMMA_OPTIONAL = ("attentionBias", "slidingWindow", "logitSoftcap", "attentionScale")
_GEMMA_DEFAULTS: Mapping[str, Any] = {"tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256}
_GEMMA3_DEFAULTS: Mapping[str, Any] = {**_GEMMA_DEFAULTS, "rope_local_base_freq": 10_000.0}
#: `model_type` to the description of its config.json.
FAMILIES: Mapping[str, PublishedFamily] = {
    "gemma": PublishedFamily("GemmaForCausalLM", _gemma, _GEMMA_PARTS, ("attentionBias",), _GEMMA_DEFAULTS, fits=_gemma_fits),
    "gemma2": PublishedFamily(
        "Gemma2ForCausalLM",
        _gemma_windows,
        (*_GEMMA_PARTS, "normPlacement sandwich"),
        _GEMMA_OPTIONAL,
        _GEMMA_DEFAULTS,
        fits=_gemma_fits,
    ),
    "gemma3_text": PublishedFamily(
        "Gemma3ForCausalLM",
        _gemma3,
        (*_GEMMA_PARTS, "normPlacement sandwich", "qkNorm"),
        _GEMMA_OPTIONAL,
        _GEMMA3_DEFAULTS,
        fits=_gemma_fits,
    ),
    "olmo2": PublishedFamily("Olmo2ForCausalLM", _olmo2, ("qkNorm", "normPlacement post"), ("attentionBias",), fits=_divides),
    "qwen2": PublishedFamily("Qwen2ForCausalLM", _qwen2, ("attentionBias",), fits=_divides),
    "qwen3": PublishedFamily("Qwen3ForCausalLM", _qwen3, ("qkNorm",), ("attentionBias",)),
    **MIXTURES,
}


def is_of_family(shape: Architecture) -> bool:
    """Whether the architecture has exactly the parts of its family (one of FAMILIES), so that config.json describes it completely."""
    family = FAMILIES.get(shape.family.model_type)
    return family is not None and family.has(shape)


def family_config(shape: Architecture, longest_context: int) -> dict[str, Any]:
    """config.json of an architecture of one of FAMILIES."""
    family = FAMILIES[shape.family.model_type]
    found = family.describe(shape) | {"max_position_embeddings": longest_context}
    empty = {key: None for key in family.nullable if found[key] is None}
    head = {"model_type": shape.family.model_type, "architectures": [family.architecture]}
    further = {"num_nextn_predict_layers": shape.mtp_layers} if shape.mtp_layers else {}
    return head | stated(found) | family.exported | further | empty | unscaled(shape.family.model_type, shape.rope_scaling)


def family_issues(config: Mapping[str, Any], shape: Architecture) -> list[str]:
    """Differences between the config.json of published weights and the architecture of the run, by key."""
    kind = config["model_type"]
    family, parts = FAMILIES[kind], parts_of(shape)
    missing = [f"model: must have {part} as all models of model_type {kind} do" for part in family.required if part not in parts]
    if missing:
        return missing
    wanted = family.describe(shape)
    theta, scaling, beyond = published_rope_scaling(_of_all_layers(config))
    given = {**_DEFAULTS, **family.defaults, **{key: value for key, value in config.items() if value is not None}}
    given |= {"rope_theta": theta, "rope_scaling": scaling.published() if scaling is not None else None}
    given |= _local_theta(config) | _unused_window(config) | family.reads(given)
    names = [key for key in wanted if not same(given.get(key), wanted[key]) and key in (*given, *_NAMED)]
    issues = [f"model: must have {key} {given.get(key)} as in config.json of the weights, got {wanted[key]}" for key in names]
    further = [part for part in (beyond, _scaled_windows(config)) if part]
    return issues + [f"model.weights: must be a model that the built-in trainer computes, got {part} in config.json" for part in further]


#: Required keys.
_NAMED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def _of_all_layers(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Selects the rotary positions of layers without a window, if they are given separately for layers with and without one."""
    rope = config.get("rope_parameters") or {}
    return {**config, "rope_parameters": rope.get("full_attention")} if _of_windows(config) or "full_attention" in rope else config


def _of_windows(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rotary positions of layers with a window, if they are given separately."""
    return (config.get("rope_parameters") or {}).get("sliding_attention") or {}


def _local_theta(config: Mapping[str, Any]) -> dict[str, Any]:
    """Theta of layers with a window, which newer files have in `rope_parameters`."""
    theta = _of_windows(config).get("rope_theta")
    return {} if theta is None else {"rope_local_base_freq": theta}


def _scaled_windows(config: Mapping[str, Any]) -> str:
    """A scaling of layers with a window, or ""."""
    kind = _of_windows(config).get("rope_type", "default")
    return "" if kind == "default" else f"rope_type {kind} of windowed layers"


def _unused_window(config: Mapping[str, Any]) -> dict[str, Any]:
    """Ignores the window size if no layer has a window."""
    types = config.get("layer_types")
    return {"sliding_window": None} if types and "sliding_attention" not in types else {}
