"""config.json of families with experts, except Mixtral, which otherwise equals Llama. Does not import PyTorch."""

from collections.abc import Mapping
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.published_keys import PublishedFamily, layer_types, with_silu


def _qwen_moe(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {
        "use_sliding_window": False,
        "num_experts": shape.experts,
        "num_experts_per_tok": shape.experts_per_token,
        "moe_intermediate_size": shape.expert_inner_size,
        "norm_topk_prob": shape.routing.normalises,
        "decoder_sparse_step": 1,
        "mlp_only_layers": list(shape.dense_layers),
    }


def _qwen_dense_layers(config: Mapping[str, Any]) -> dict[str, Any]:
    """Lists the layers without experts: every `decoder_sparse_step`-th layer has experts, except those in `mlp_only_layers`."""
    step, only = config["decoder_sparse_step"], config["mlp_only_layers"]
    layers = range(int(config.get("num_hidden_layers", 0)))
    return {"decoder_sparse_step": 1, "mlp_only_layers": [layer for layer in layers if layer in only or (layer + 1) % step]}


def _qwen2_moe(shape: Architecture) -> dict[str, Any]:
    return _qwen_moe(shape) | {"qkv_bias": shape.attention_bias, "shared_expert_intermediate_size": shape.shared_ffn_hidden_size}


def _qwen3_moe(shape: Architecture) -> dict[str, Any]:
    return _qwen_moe(shape) | {"head_dim": shape.head_size, "attention_bias": shape.attention_bias}


def _gpt_oss(shape: Architecture) -> dict[str, Any]:
    return with_silu(shape) | {
        "head_dim": shape.head_size,
        "attention_bias": shape.attention_bias,
        "sliding_window": shape.window.size if shape.window is not None else None,
        "layer_types": layer_types(shape),
        "num_local_experts": shape.experts,
        "num_experts_per_tok": shape.experts_per_token,
    }


def _llama4(shape: Architecture) -> dict[str, Any]:
    window, heat = shape.window, shape.family.temperature
    chunks = ["chunked_attention" if shape.has_window(layer) else "full_attention" for layer in range(shape.layers)]
    return (
        with_silu(shape)
        | {
            "intermediate_size": shape.expert_inner_size,
            "intermediate_size_mlp": shape.ffn_hidden_size,
            "head_dim": shape.head_size,
            "attention_bias": shape.attention_bias,
            "num_local_experts": shape.experts,
            "num_experts_per_tok": shape.experts_per_token,
            "moe_layers": [layer for layer in range(shape.layers) if shape.has_experts(layer)],
            "use_qk_norm": shape.qk_norm,
            "no_rope_layers": [0 if layer in shape.unrotated_layers else 1 for layer in range(shape.layers)],
            "attn_temperature_tuning": heat is not None,
            "layer_types": chunks,
        }
        | ({"attention_chunk_size": window.size} if window is not None else {})
        | ({"floor_scale": heat.floor, "attn_scale": heat.scale} if heat is not None else {})
    )


def _llama4_layers(config: Mapping[str, Any]) -> dict[str, Any]:
    """Converts intervals in config.json to lists of layers."""
    layers = range(int(config.get("num_hidden_layers", 0)))
    step, interval = config.get("interleave_moe_layer_step", 1), config.get("no_rope_layer_interval", 4)
    rotated = config.get("no_rope_layers") or [int((layer + 1) % interval != 0) for layer in layers]
    chunks = ["chunked_attention" if turned else "full_attention" for turned in rotated]
    mixtures = [layer for layer in layers if layer % step == step - 1]
    return {
        "moe_layers": config.get("moe_layers", mixtures),
        "no_rope_layers": rotated,
        "layer_types": config.get("layer_types", chunks),
    }


def _deepseek(shape: Architecture) -> dict[str, Any]:
    latent = shape.latent
    assert latent is not None
    return with_silu(shape) | {
        "attention_bias": shape.attention_bias,
        "q_lora_rank": latent.q_rank,
        "kv_lora_rank": latent.kv_rank,
        "qk_nope_head_dim": latent.nope_head_size,
        "qk_rope_head_dim": latent.rope_head_size,
        "v_head_dim": latent.value_head_size,
        "n_routed_experts": shape.experts,
        "num_experts_per_tok": shape.experts_per_token,
        "moe_intermediate_size": shape.expert_inner_size,
        "n_shared_experts": shape.shared_ffn_hidden_size // shape.expert_inner_size,
        "first_k_dense_replace": len(shape.dense_layers),
        "routed_scaling_factor": shape.routing.scaling,
    }


def _groups(shape: Architecture) -> dict[str, Any]:
    return {"n_group": shape.routing.groups, "topk_group": shape.routing.top_groups}


def _deepseek_v2(shape: Architecture) -> dict[str, Any]:
    # Without groups, the two group sizes have no effect.
    if shape.routing.groups == 1:
        return _deepseek(shape) | {"topk_method": "greedy"}
    return _deepseek(shape) | {"topk_method": "group_limited_greedy"} | _groups(shape)


def _deepseek_v3(shape: Architecture) -> dict[str, Any]:
    return (
        _deepseek(shape) | _groups(shape) | {"norm_topk_prob": shape.routing.normalises, "rope_interleave": shape.family.interleaved_rope}
    )


def _deepseek_fits(shape: Architecture) -> bool:
    """Dense layers must come first, and each shared expert must have the size of a routed expert."""
    is_first = shape.dense_layers == tuple(range(len(shape.dense_layers)))
    return is_first and shape.shared_ffn_hidden_size % shape.expert_inner_size == 0 and shape.has_output_bias == shape.attention_bias


_DEEPSEEK_PARTS = ("experts", "latentAttention", "sharedExperts")
_DEEPSEEK_OPTIONAL = ("attentionBias", "denseLayers", "expertFfnHiddenSize", "routedScaling", "routing.groups")
_DEEPSEEK_V3 = PublishedFamily(
    "DeepseekV3ForCausalLM",
    _deepseek_v3,
    required=(*_DEEPSEEK_PARTS, "routing.bias", "routing.score sigmoid"),
    optional=(*_DEEPSEEK_OPTIONAL, "interleavedRope", "routing.normalise false", "mtpLayers"),
    defaults={"norm_topk_prob": True, "rope_interleave": True},
    # Without this key, transformers assumes one multi-token prediction module.
    exported={"topk_method": "noaux_tc", "scoring_func": "sigmoid", "num_nextn_predict_layers": 0},
    nullable=("q_lora_rank",),
    fits=lambda shape: _deepseek_fits(shape) and shape.routing.deciding_experts == 2,
)

#: `model_type` to the description of its config.json.
MIXTURES: Mapping[str, PublishedFamily] = {
    "deepseek_v2": PublishedFamily(
        "DeepseekV2ForCausalLM",
        _deepseek_v2,
        required=(*_DEEPSEEK_PARTS, "interleavedRope", "routing.normalise false"),
        optional=_DEEPSEEK_OPTIONAL,
        defaults={"topk_method": "greedy", "routed_scaling_factor": 1.0},
        exported={"scoring_func": "softmax", "norm_topk_prob": False},
        nullable=("q_lora_rank",),
        fits=lambda shape: _deepseek_fits(shape) and (shape.routing.groups == 1 or shape.routing.deciding_experts == 1),
    ),
    "deepseek_v3": _DEEPSEEK_V3,
    "gpt_oss": PublishedFamily(
        "GptOssForCausalLM",
        _gpt_oss,
        required=("experts", "attentionSinks", "activation clamped-swiglu", "expertBias", "routerBias"),
        optional=("attentionBias", "slidingWindow"),
        defaults={"attention_bias": True, "head_dim": 64, "sliding_window": 128, "rms_norm_eps": 1e-5, "num_key_value_heads": 8},
        exported={"swiglu_limit": 7.0},
        fits=lambda shape: not shape.dense_layers and shape.has_output_bias == shape.attention_bias,
    ),
    # Its files use DeepSeek-V3's class with another model_type.
    "kimi_k2": _DEEPSEEK_V3,
    "llama4_text": PublishedFamily(
        "Llama4ForCausalLM",
        _llama4,
        required=("experts", "sharedExperts", "interleavedRope", "routing.normalise false", "routing.score sigmoid", "weighsExpertInputs"),
        optional=(
            *("attentionBias", "attentionChunk", "attentionTemperature", "denseLayers", "expertFfnHiddenSize", "qkNorm", "unrotatedLayers"),
        ),
        defaults={
            **{"attention_chunk_size": 8192, "attn_scale": 0.1, "attn_temperature_tuning": True, "floor_scale": 8192, "head_dim": 128},
            **{"use_qk_norm": True, "rms_norm_eps": 1e-5, "num_key_value_heads": 8},
        },
        reads=_llama4_layers,
        fits=lambda shape: (
            shape.shared_ffn_hidden_size == shape.expert_inner_size
            and shape.has_output_bias == shape.attention_bias
            and (not shape.qk_norm or shape.family.qk_norm == "weightless")
        ),
    ),
    "qwen2_moe": PublishedFamily(
        "Qwen2MoeForCausalLM",
        _qwen2_moe,
        required=("experts", "sharedExperts", "sharedExpertGate"),
        optional=("attentionBias", "expertFfnHiddenSize", "denseLayers", "routing.normalise false"),
        defaults={"qkv_bias": True, "shared_expert_intermediate_size": 5632, "num_key_value_heads": 16},
        reads=_qwen_dense_layers,
        fits=lambda shape: shape.head_size * shape.attention_heads == shape.hidden_size and not shape.has_output_bias,
    ),
    "qwen3_moe": PublishedFamily(
        "Qwen3MoeForCausalLM",
        _qwen3_moe,
        required=("qkNorm", "experts"),
        optional=("attentionBias", "expertFfnHiddenSize", "denseLayers", "routing.normalise false"),
        defaults={"num_key_value_heads": 4},
        reads=_qwen_dense_layers,
    ),
}
