"""Imports and exports published weights with the parameter names of their family, and exports adapters in PEFT's format
(https://huggingface.co/docs/peft/developer_guides/checkpoint, 2026-11-22).

Some families have tensors that contain a matrix or bias of all experts, as GPT-OSS: (experts, inputs, outputs), with gate and up projection
in one tensor. A row is the part of such a tensor for one expert.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slipway_trainer.exits import InvalidRun
from slipway_trainer.initialise import values_of
from slipway_trainer.lora import merged
from slipway_trainer.published_config import config_issues
from slipway_trainer.published_names import Place, published_name, published_place, repeated_names
from slipway_trainer.safetensors import open_folder, write_file
from slipway_trainer.settings import Architecture, Lora, RunSettings, Training
from slipway_trainer.sharding import Values

#: Name and content of a full tensor; with a third item, the index of the row that the content is.
Piece = tuple[str, Tensor] | tuple[str, Tensor, int]


def packed_shape(place: Place, shape: Sequence[int], experts: int) -> tuple[int, ...]:
    """The shape of the published tensor that contains a parameter of this shape."""
    if place.expert is None:
        return tuple(shape)
    *inputs, outputs = reversed(shape)
    return (experts, *inputs, outputs * (1 if place.half is None else 2))


def unpacked(row: Tensor, place: Place) -> Tensor:
    """Extracts the parameter from the row of its expert."""
    if place.half is not None:
        row = row[..., place.half :: 2] if place.alternates else row.chunk(2, dim=-1)[place.half]
    return row.t()


def _row(halves: Mapping[int | None, Tensor], alternates: bool) -> Tensor:
    if None in halves:
        return halves[None].t()
    gate, up = halves[0].t(), halves[1].t()
    return torch.stack((gate, up), dim=-1).flatten(-2) if alternates else torch.cat((gate, up), dim=-1)


def packed(parts: Iterable[tuple[Place, Tensor]]) -> Iterator[Piece]:
    """Yields full tensors immediately, and rows of experts when both halves are available."""
    held: dict[tuple[str, int], dict[int | None, Tensor]] = {}
    for place, tensor in parts:
        if place.expert is None:
            yield place.tensor, tensor
            continue
        halves = held.setdefault((place.tensor, place.expert), {})
        halves[place.half] = tensor
        if place.half is None or len(halves) == 2:
            yield place.tensor, _row(held.pop((place.tensor, place.expert)), place.alternates), place.expert


#: Buffers in old checkpoints that all libraries recompute.
_COMPUTED = "rotary_emb.inv_freq"


class PublishedWeights:
    """A folder of safetensors files and config.json with the parameters of a model.

    Raises InvalidRun for contradictions to config.json, missing tensors, other shapes and unused tensors, which indicate another
    architecture.
    """

    def __init__(self, folder: Path, shapes: Mapping[str, Sequence[int]], architecture: Architecture, sequence_length: int) -> None:
        self._files, self._shape = open_folder(folder), architecture
        issues = config_issues(folder, architecture, sequence_length) + self._differences(shapes)
        if issues:
            raise InvalidRun(*issues)

    def _differences(self, shapes: Mapping[str, Sequence[int]]) -> list[str]:
        missing, wrong, used = [], [], set()
        for name, shape in shapes.items():
            place = self._place(name)
            if place is None or place.tensor in used:
                # A tensor that contains all experts is compared only once.
                continue
            source, wanted = place.tensor, packed_shape(place, shape, self._shape.experts)
            used.add(source)
            if source not in self._files:
                missing.append(f"no {source}")
            elif self._files[source].shape(source) != wanted:
                wrong.append(f"{source} {self._files[source].shape(source)} instead of {wanted}")
        unused = [f"{name} without a place" for name in sorted(set(self._files) - used) if not self._is_repeated(name)]
        differences = missing + wrong + unused
        if not differences:
            return []
        listed = ", ".join(missing[:3] + wrong[:3] + unused[:3])
        return [f"model.weights: must be a checkpoint of this architecture; {len(differences)} differences: {listed}"]

    def _is_repeated(self, name: str) -> bool:
        """Whether a tensor is redundant: a buffer, or a second copy of the embedding or head."""
        if name.endswith(_COMPUTED):
            return True
        copies = {published_name("head.weight"): published_name("embed.weight")} | repeated_names(self._shape)
        original = copies.get(name)
        if original is None or original not in self._files:
            return False
        return torch.equal(self._files[name].tensor(name), self._files[original].tensor(original))

    def _place(self, name: str) -> Place | None:
        return None if ".lora_" in name else published_place(name, self._shape)

    def whole(self, name: str) -> Tensor | None:
        """One full parameter, of which only the used part is read; None for adapters, which published weights do not have."""
        place = self._place(name)
        if place is None:
            return None
        found = self._files[place.tensor].tensor(place.tensor, place.expert)
        return found if place.expert is None else unpacked(found, place)


def published_of(settings: RunSettings, shapes: Mapping[str, Sequence[int]], folder: Path | None) -> PublishedWeights | None:
    """The initial weights of a run; None if it starts from random values."""
    return PublishedWeights(folder, shapes, settings.architecture, settings.training.sequence_length) if folder is not None else None


def starting_values(settings: RunSettings, published: PublishedWeights | None, device: torch.device) -> Values:
    """The values with which a run starts: the published ones, otherwise and for adapters random ones."""
    drawn = values_of(settings.architecture.layers, settings.training.seed, device)

    def values(name: str, shape: torch.Size) -> Tensor:
        whole = published.whole(name) if published is not None else None
        return drawn(name, shape) if whole is None else whole

    return values


def _merged(
    whole: Iterable[tuple[str, Tensor]], shapes: Mapping[str, Any], lora: Lora | None, architecture: Architecture
) -> Iterator[tuple[Place, Tensor]]:
    """Yields full parameters with their place in published files, and with adapters merged."""
    held: dict[str, Tensor] = {}
    for name, tensor in whole:
        layer, _, kind = name.rpartition(".")
        if lora is not None and kind != "bias" and f"{layer}.lora_b" in shapes:
            # A layer's weight, lora_a and lora_b are adjacent.
            held[kind] = tensor
            if kind != "lora_b":
                continue
            name, tensor = f"{layer}.weight", merged(held["weight"], held["lora_a"], tensor, lora.alpha / lora.rank)
        yield published_place(name, architecture), tensor


def export_weights(
    whole: Iterable[tuple[str, Tensor]],
    shapes: Mapping[str, Sequence[int]],
    folder: Path,
    training: Training,
    rank: int,
    architecture: Architecture,
) -> None:
    """Writes model.safetensors on rank 0, in the precision of the run. All ranks must iterate over `whole`, which uses collectives."""
    tensors = packed(_merged(whole, shapes, training.lora, architecture))
    if rank != 0:
        for _piece in tensors:
            pass
        return
    dtype = torch.float32 if training.precision == "fp32" else torch.bfloat16
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name, shape in shapes.items():
        if ".lora_" not in name:
            place = published_place(name, architecture)
            # Routing biases stay in float32, as in published files.
            kept = torch.float32 if name.endswith("choice_bias") else dtype
            sizes[place.tensor] = (kept, packed_shape(place, shape, architecture.experts))
    copies = repeated_names(architecture)
    sizes |= {copy: sizes[original] for copy, original in copies.items()}
    write_file(folder / "model.safetensors", _repeated(tensors, copies), sizes)


def _repeated(tensors: Iterable[Piece], copies: Mapping[str, str]) -> Iterator[Piece]:
    """Yields each piece, and copies of it for tensors that published files repeat under other names."""
    for piece in tensors:
        yield piece
        yield from ((copy, piece[1]) for copy, original in copies.items() if original == piece[0])


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
    matrices = ((names[name], tensor) for name, tensor in whole if name in names)
    write_file(folder / "adapter_model.safetensors", matrices, sizes)
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
