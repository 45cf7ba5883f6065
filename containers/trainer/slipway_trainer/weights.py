"""Published weights in and out, under the names that Llama, Mistral and Mixtral checkpoints use."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slipway_trainer.exits import Settings
from slipway_trainer.lora import LoraLinear, merged
from slipway_trainer.safetensors import open_folder, write_file
from slipway_trainer.settings import Architecture
from slipway_trainer.sharding import fill, gathered

_OUTSIDE = {"embed.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight", "head.weight": "lm_head.weight"}
_INSIDE = (
    ("attention_norm.", "input_layernorm."),
    ("mlp_norm.", "post_attention_layernorm."),
    ("attention.", "self_attn."),
    ("mlp.router.", "block_sparse_moe.gate."),
    ("mlp.experts.", "block_sparse_moe.experts."),
)
#: Inside an expert Mixtral numbers the matrices.
_EXPERT = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}


def published_name(name: str) -> str:
    """The name of one of our parameters in a published checkpoint."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    _blocks, number, rest = name.split(".", 2)
    for ours, theirs in _INSIDE:
        if rest.startswith(ours):
            rest = theirs + rest[len(ours) :]
            break
    if ".experts." in rest:
        for ours, theirs in _EXPERT.items():
            rest = rest.replace(ours, theirs)
    return f"model.layers.{number}.{rest}"


def load_weights(model: nn.Module, folder: Path) -> None:
    """Fills every parameter from a folder of safetensors. Adapters keep their first values. Raises Settings naming what is missing."""
    files = open_folder(folder)
    missing, wrong = [], []
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        source = published_name(name)
        if source == "lm_head.weight" and source not in files:
            source = "model.embed_tokens.weight"
        if source not in files:
            missing.append(source)
            continue
        whole = files[source].tensor(source)
        if whole.shape != parameter.shape:
            wrong.append(f"{source} {tuple(whole.shape)} instead of {tuple(parameter.shape)}")
            continue
        fill(parameter, whole.to(parameter.device))
    if missing or wrong:
        listed = ", ".join([f"no {name}" for name in missing[:3]] + wrong[:3])
        raise Settings([f"model.weights: must be a checkpoint of this architecture; {len(missing) + len(wrong)} differences: {listed}"])


def export_sizes(model: nn.Module, dtype: torch.dtype) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
    """What an export holds, in order."""
    return {published_name(name): (dtype, tuple(parameter.shape)) for name, parameter in model.named_parameters() if ".lora_" not in name}


def export_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Whole tensors, one at a time, adapters merged in. Every rank must walk through it."""
    adapters = {name: module for name, module in model.named_modules() if isinstance(module, LoraLinear)}
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        whole = gathered(parameter)
        adapter = adapters.get(name.removesuffix(".weight"))
        if adapter is not None:
            whole = merged(whole, gathered(adapter.lora_a), gathered(adapter.lora_b), adapter.scale)
        yield published_name(name), whole


def published_config(shape: Architecture, sequence_length: int) -> dict[str, Any]:
    """config.json for the export."""
    mixture = shape.experts > 0
    config: dict[str, Any] = {
        "model_type": "mixtral" if mixture else "llama",
        "architectures": ["MixtralForCausalLM" if mixture else "LlamaForCausalLM"],
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.ffn_hidden_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.attention_heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "vocab_size": shape.vocabulary_size,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_epsilon,
        "tie_word_embeddings": shape.tied_embeddings,
        "max_position_embeddings": sequence_length,
        "hidden_act": "silu",
    }
    return config | ({"num_local_experts": shape.experts, "num_experts_per_tok": shape.experts_per_token} if mixture else {})


def export_weights(model: nn.Module, folder: Path, shape: Architecture, sequence_length: int, dtype: torch.dtype, rank: int) -> None:
    """Writes model.safetensors and config.json on rank 0; all ranks take part in gathering."""
    if rank != 0:
        for _name, _tensor in export_tensors(model):
            pass
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "model.safetensors", export_tensors(model), export_sizes(model, dtype))
    (folder / "config.json").write_text(json.dumps(published_config(shape, sequence_length), indent=1) + "\n", encoding="utf-8")
