"""config.json of families with more parts than Llama: the content for exports and the checks for imports. Does not import PyTorch."""

from collections.abc import Mapping
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.published_keys import PublishedFamily, common, layer_types, parts_of, same, stated, with_silu
from slipway_trainer.published_mixtures import MIXTURES
from slipway_trainer.rope_scaling import published_rope_scaling, unscaled

#: Families that consist only of Llama's blocks; the keys of one may describe a run of another.
PLAIN_FAMILIES = ("llama", "mistral", "mixtral", "slipway-plain-mlp")
#: Defaults of transformers for missing keys of a family's config.json; keys without a default are compared with null.
_DEFAULTS: Mapping[str, Any] = {
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "hidden_act": "silu",
    "mlp_bias": False,
    "mlp_only_layers": [],
    "norm_topk_prob": False,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
}


def _llama(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {"head_dim": shape.head_size, "attention_bias": shape.attention_bias, "mlp_bias": False}


def _mistral(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {"head_dim": shape.head_size, "sliding_window": shape.window.size if shape.window is not None else None}


def _experts(shape: Architecture) -> dict[str, Any]:
    return {"num_local_experts": shape.experts, "num_experts_per_tok": shape.experts_per_token} if shape.experts else {}


def _mixtral(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {"head_dim": shape.head_size} | _experts(shape)


def _plain_mlp(shape: Architecture) -> dict[str, Any]:
    return common(shape) | {"head_dim": shape.head_size, "hidden_act": "gelu"} | _experts(shape)


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
_GEMMA_DEFAULTS: Mapping[str, Any] = {
    "tie_word_embeddings": True,
    "hidden_activation": "gelu_pytorch_tanh",
    "head_dim": 256,
    "num_key_value_heads": 4,
}
_GEMMA3_DEFAULTS: Mapping[str, Any] = {
    **_GEMMA_DEFAULTS,
    "rope_local_base_freq": 10_000.0,
    "num_attention_heads": 8,
    "vocab_size": 262_208,
}
#: `model_type` to the description of its config.json.
FAMILIES: Mapping[str, PublishedFamily] = {
    "llama": PublishedFamily("LlamaForCausalLM", _llama, (), ("attentionBias",)),
    "mistral": PublishedFamily(
        "MistralForCausalLM",
        _mistral,
        (),
        ("slidingWindow",),
        {"num_key_value_heads": 8},
        nullable=("sliding_window",),
        fits=lambda shape: shape.window is None or shape.window.pattern == "all",
    ),
    "mixtral": PublishedFamily(
        "MixtralForCausalLM",
        _mixtral,
        ("experts",),
        defaults={"num_local_experts": 8, "num_experts_per_tok": 2, "num_key_value_heads": 8, "rms_norm_eps": 1e-5},
    ),
    # A plain MLP with Llama's attention, which no library supports.
    "slipway-plain-mlp": PublishedFamily("", _plain_mlp, (), ("experts",), {"hidden_act": "gelu"}, gated=False),
    "gemma": PublishedFamily(
        "GemmaForCausalLM",
        _gemma,
        _GEMMA_PARTS,
        ("attentionBias",),
        {**_GEMMA_DEFAULTS, "num_key_value_heads": 16},
        fits=_gemma_fits,
    ),
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
    "olmo2": PublishedFamily(
        "Olmo2ForCausalLM", _olmo2, ("qkNorm", "normPlacement post"), ("attentionBias",), {"rms_norm_eps": 1e-5}, fits=_divides
    ),
    "qwen2": PublishedFamily("Qwen2ForCausalLM", _qwen2, ("attentionBias",), defaults={"num_key_value_heads": 32}, fits=_divides),
    "qwen3": PublishedFamily("Qwen3ForCausalLM", _qwen3, ("qkNorm",), ("attentionBias",), {"head_dim": 128, "num_key_value_heads": 32}),
    **MIXTURES,
}


def family_of(shape: Architecture) -> str | None:
    """The family whose config.json describes an architecture completely: one with exactly its parts; None if there is none."""
    plain = "mixtral" if shape.experts else "mistral" if shape.window is not None else "llama"
    kinds = (shape.family.model_type, plain if shape.gated_mlp else "slipway-plain-mlp")
    return next((kind for kind in kinds if kind in FAMILIES and FAMILIES[kind].has(shape)), None)


def family_config(kind: str, shape: Architecture, longest_context: int) -> dict[str, Any]:
    """config.json of an architecture of one of FAMILIES."""
    family = FAMILIES[kind]
    found = family.describe(shape) | {"max_position_embeddings": longest_context}
    empty = {key: None for key in family.nullable if found[key] is None}
    head = {"model_type": kind} | ({"architectures": [family.architecture]} if family.architecture else {})
    further = {"num_nextn_predict_layers": shape.mtp_layers} if shape.mtp_layers else {}
    return head | stated(found) | family.exported | further | empty | unscaled(kind, shape.rope_scaling)


def family_issues(config: Mapping[str, Any], shape: Architecture, sequence_length: int) -> list[str]:
    """Differences between the config.json of published weights and the architecture of the run, by key."""
    kind = config["model_type"]
    family, parts = FAMILIES[kind], parts_of(shape)
    missing = [f"model: must have {part} as all models of model_type {kind} do" for part in family.required if part not in parts]
    if missing:
        return missing
    wanted = family.describe(shape)
    theta, scaling, beyond = published_rope_scaling(_of_all_layers(config))
    given = _heads(config) | _DEFAULTS | family.defaults | stated(config)
    given |= {"rope_theta": theta, "rope_scaling": scaling.published() if scaling is not None else None}
    given |= _local_theta(config) | _unused_window(config, shape, sequence_length) | family.reads(given)
    given["hidden_act"] = "silu" if given["hidden_act"] == "swish" else given["hidden_act"]
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


def _heads(config: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes of heads that follow from others where a file states none."""
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    return {"num_key_value_heads": heads, "head_dim": hidden // heads} if heads and hidden else {}


def _unused_window(config: Mapping[str, Any], shape: Architecture, sequence_length: int) -> dict[str, Any]:
    """Ignores the window size if no layer has a window, or if it holds the whole rows of a run without one."""
    types, size = config.get("layer_types"), config.get("sliding_window") or 0
    holds_all = shape.window is None and size >= sequence_length
    unused = holds_all or config.get("use_sliding_window") is False or (types and "sliding_attention" not in types)
    return {"sliding_window": None} if unused else {}
