"""Exports adapters in PEFT's format: adapter_model.safetensors and adapter_config.json
(https://huggingface.co/docs/peft/developer_guides/checkpoint, 2026-11-22).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from slipway_trainer.architecture import Architecture
from slipway_trainer.published_names import published_name
from slipway_trainer.safetensors import write_file
from slipway_trainer.settings import RunSettings

#: PEFT's names of the two LoRA matrices.
_MATRICES = {"lora_a": "lora_A", "lora_b": "lora_B"}


def adapter_name(name: str, architecture: Architecture) -> str:
    """PEFT's name for a `lora_a` or `lora_b` parameter, derived from the published name of the layer's weight."""
    layer, _, kind = name.rpartition(".")
    published = published_name(f"{layer}.weight", architecture).removesuffix(".weight")
    return f"base_model.model.{published}.{_MATRICES[kind]}.weight"


def export_adapter(
    whole: Iterable[tuple[str, Tensor]], shapes: Mapping[str, Sequence[int]], folder: Path, settings: RunSettings, rank: int
) -> None:
    """Writes the adapter in float32 to `adapter/` in the folder, on rank 0. Next to merged weights, transformers would apply the adapter a
    second time. All ranks must iterate over `whole`, which uses collectives."""
    if rank != 0:
        for _name, _tensor in whole:
            pass
        return
    lora, architecture = settings.training.lora, settings.architecture
    assert lora is not None, "limits.py refuses export-adapter without an adapter"
    names = {name: adapter_name(name, architecture) for name in shapes if name.rpartition(".")[2] in _MATRICES}
    folder = folder / "adapter"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {names[name]: (torch.float32, tuple(shapes[name])) for name in names}
    write_file(folder / "adapter_model.safetensors", _matrices(whole, names), sizes)
    layers = sorted({name.split(".lora_")[0].rpartition(".")[2] for name in names.values()})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": layers,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _matrices(whole: Iterable[tuple[str, Tensor]], names: Mapping[str, str]) -> Iterator[tuple[str, Tensor]]:
    for name, tensor in whole:
        if name in names:
            yield names[name], tensor
