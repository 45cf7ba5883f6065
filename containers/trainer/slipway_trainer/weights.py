"""Published weights in and out, under the names that Llama, Mistral and Mixtral checkpoints use."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slipway_trainer.exits import Settings
from slipway_trainer.lora import merged
from slipway_trainer.safetensors import open_folder, write_file
from slipway_trainer.settings import Architecture, Lora, Training
from slipway_trainer.sharding import fill

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


class PublishedWeights:
    """A folder of safetensors with the parameters of a model. Raises Settings naming what is missing or has another shape."""

    def __init__(self, folder: Path, shapes: Mapping[str, Sequence[int]]) -> None:
        self._files = open_folder(folder)
        missing, wrong = [], []
        for name, shape in shapes.items():
            source = self._source(name)
            if source is None:
                continue
            if source not in self._files:
                missing.append(source)
            elif self._files[source].shape(source) != tuple(shape):
                wrong.append(f"{source} {self._files[source].shape(source)} instead of {tuple(shape)}")
        if missing or wrong:
            listed = ", ".join([f"no {name}" for name in missing[:3]] + wrong[:3])
            raise Settings([f"model.weights: must be a checkpoint of this architecture; {len(missing) + len(wrong)} differences: {listed}"])

    def _source(self, name: str) -> str | None:
        if ".lora_" in name:
            return None
        source = published_name(name)
        return "model.embed_tokens.weight" if source == "lm_head.weight" and source not in self._files else source

    def whole(self, name: str) -> Tensor | None:
        """One parameter; None for an adapter, which published weights do not have."""
        source = self._source(name)
        return self._files[source].tensor(source) if source is not None else None


def load_weights(model: nn.Module, folder: Path) -> None:
    """Fills every parameter, sharded or not, from a folder of safetensors. Adapters keep their first values."""
    found = PublishedWeights(folder, {name: parameter.shape for name, parameter in model.named_parameters()})
    for name, parameter in model.named_parameters():
        whole = found.whole(name)
        if whole is not None:
            fill(parameter, whole.to(parameter.device))


def published_tensors(whole: Iterable[tuple[str, Tensor]], shapes: Mapping[str, Any], lora: Lora | None) -> Iterator[tuple[str, Tensor]]:
    """Whole tensors under their published names, one at a time, adapters merged in."""
    held: dict[str, Tensor] = {}
    for name, tensor in whole:
        layer, _, kind = name.rpartition(".")
        if lora is not None and f"{layer}.lora_b" in shapes:
            # A layer's weight, lora_a and lora_b follow each other.
            held[kind] = tensor
            if kind != "lora_b":
                continue
            name, tensor = f"{layer}.weight", merged(held["weight"], held["lora_a"], tensor, lora.alpha / lora.rank)
        yield published_name(name), tensor


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


def export_weights(
    whole: Iterable[tuple[str, Tensor]], shapes: Mapping[str, Sequence[int]], folder: Path, training: Training, rank: int
) -> None:
    """Writes model.safetensors on rank 0, in the precision of the run; every rank must walk through `whole`."""
    tensors = published_tensors(whole, shapes, training.lora)
    if rank != 0:
        for _name, _tensor in tensors:
            pass
        return
    dtype = torch.float32 if training.precision == "fp32" else torch.bfloat16
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {published_name(name): (dtype, tuple(shape)) for name, shape in shapes.items() if ".lora_" not in name}
    write_file(folder / "model.safetensors", tensors, sizes)


def write_config(folder: Path, shape: Architecture, sequence_length: int) -> None:
    (folder / "config.json").write_text(json.dumps(published_config(shape, sequence_length), indent=1) + "\n", encoding="utf-8")
