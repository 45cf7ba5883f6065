"""Models of both sides with the same weights: the trainer's, and the one that transformers makes of the trainer's export."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from plain_loop import publish
from rank_world import trainer_job
from slipway_trainer.initialise import values_of
from slipway_trainer.model import Transformer
from slipway_trainer.settings import resolve_settings
from slipway_trainer.sharding import fill_all, named_tensors

#: The model of every check unless it says otherwise: three layers, grouped-query attention.
BASE = {"layers": 3}
BASE_CONFIG = {"num_hidden_layers": 3}
LLAMA3_ROPE = {"type": "llama3", "factor": 8, "lowFreqFactor": 1, "highFreqFactor": 4, "originalMaxPositionEmbeddings": 128}
YARN_ROPE = {"type": "yarn", "factor": 4, "originalMaxPositionEmbeddings": 256}
MIXTURE = {"experts": 4, "expertsPerToken": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "grouped-query attention": {},
    "multi-head attention": {"kvHeads": 4},
    "tied embeddings": {"tiedEmbeddings": True},
    "Llama 3.1 rope scaling": {"ropeTheta": 500_000.0, "ropeScaling": LLAMA3_ROPE},
    "YaRN rope scaling": {"headSize": 32, "ropeScaling": YARN_ROPE},
    "mixture of experts (Mixtral)": MIXTURE,
}
#: Sizes of a mixture, of windows and of latent attention, in the words of a config.json.
EXPERT = {"num_experts_per_tok": 2, "moe_intermediate_size": 40}
WINDOW = {"sliding_window": 48, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
LATENT = EXPERT | {
    "q_lora_rank": 24, "kv_lora_rank": 20, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "n_routed_experts": 4,
    "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 256}
#: Families of today, each as its config.json.
TODAY: dict[str, dict[str, Any]] = {
    "Mistral with a window": {"model_type": "mistral", "sliding_window": 48},
    "Qwen 2.5": {"model_type": "qwen2"},
    "Qwen 3": {"model_type": "qwen3", "head_dim": 32},
    "OLMo 2": {"model_type": "olmo2"},
    "Gemma 2": WINDOW | {"model_type": "gemma2", "tie_word_embeddings": True, "head_dim": 8, "query_pre_attn_scalar": 24},
    "Gemma 3": WINDOW | {
        "model_type": "gemma3_text", "tie_word_embeddings": True, "head_dim": 8, "query_pre_attn_scalar": 24, "rope_theta": 1e6,
    },
    "Qwen2-MoE": EXPERT | {"model_type": "qwen2_moe", "num_experts": 4, "shared_expert_intermediate_size": 56},
    "Qwen3-MoE": EXPERT | {"model_type": "qwen3_moe", "head_dim": 8, "num_experts": 4, "norm_topk_prob": True},
    "GPT-OSS": WINDOW | {
        "model_type": "gpt_oss", "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
        "rope_scaling": YARN | {"truncate": False},
    },
    "DeepSeek-V2": LATENT | {
        "model_type": "deepseek_v2", "n_shared_experts": 2, "topk_method": "group_limited_greedy", "routed_scaling_factor": 4.0,
    },
    "DeepSeek-V3": LATENT | {"model_type": "deepseek_v3", "rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.8}},
    "Llama 4 (text)": {
        "model_type": "llama4_text", "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size": 40,
        "intermediate_size_mlp": 64, "moe_layers": [1, 2], "no_rope_layers": [1, 0, 1], "attention_chunk_size": 48, "floor_scale": 64,
    },
}  # fmt: skip
FAMILIES |= TODAY
#: Weights as large as those of a trained model, so that attention is far from uniform and positions matter.
TRAINED_SCALE = 8.0


def whole_model(changes: dict[str, Any]) -> dict[str, Any]:
    """The model of a check, as an architecture or as a config.json."""
    return (BASE_CONFIG if "model_type" in changes else BASE) | changes


def our_model(changes: dict[str, Any], scale: float = 1.0) -> Transformer:
    """The trainer's model with its first values; matrices are `scale` times as large."""
    architecture = resolve_settings(trainer_job(model=whole_model(changes)), [], {}).architecture
    model = Transformer(architecture)
    fill_all(model, values_of(architecture.layers, 11, torch.device("cpu")))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(1.0 if "norm" in name else scale)
        for name, tensor in named_tensors(model):
            # Zero is where they begin and says nothing of them.
            if name.endswith(("bias", "sinks")):
                tensor.normal_(0.0, 0.1, generator=torch.Generator().manual_seed(13))
    return model


def their_model(folder: Path) -> Any:
    """What transformers reads from an export, in float32."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    # Some families name a padding token, whose embedding transformers gives no gradient.
    model.get_input_embeddings().padding_idx = None
    return model


def pair(changes: dict[str, Any], folder: Path, scale: float = 1.0) -> tuple[Transformer, Any]:
    """Both models with the same weights."""
    ours = our_model(changes, scale)
    publish(ours, folder)
    return ours, their_model(folder)
