"""Published weights in and out, under the names of their family."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slipway_trainer.exits import Settings
from slipway_trainer.lora import merged
from slipway_trainer.packed_experts import Piece, packed, packed_shape, unpacked
from slipway_trainer.published_config import config_issues
from slipway_trainer.published_names import Place, published_name, published_place, repeated_names
from slipway_trainer.safetensors import open_folder, write_file
from slipway_trainer.settings import Architecture, Lora, RunSettings, Training
from slipway_trainer.sharding import fill, named_tensors

#: Buffers that old checkpoints carry and every library computes again.
_COMPUTED = "rotary_emb.inv_freq"


class PublishedWeights:
    """A folder of safetensors and config.json with the parameters of a model.

    Raises Settings naming what config.json contradicts, what is missing, has another shape, or has no place in the model: a tensor that
    is left over means another architecture.
    """

    def __init__(self, folder: Path, shapes: Mapping[str, Sequence[int]], architecture: Architecture, sequence_length: int) -> None:
        self._files, self._shape = open_folder(folder), architecture
        issues = config_issues(folder, architecture, sequence_length) + self._differences(shapes)
        if issues:
            raise Settings(issues)

    def _differences(self, shapes: Mapping[str, Sequence[int]]) -> list[str]:
        missing, wrong, used = [], [], set()
        for name, shape in shapes.items():
            place = self._place(name)
            if place is None or place.tensor in used:
                # A tensor with all experts is compared once.
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
        """One parameter; None for an adapter, which published weights do not have."""
        place = self._place(name)
        if place is None:
            return None
        found = self._files[place.tensor].tensor(place.tensor, place.expert)
        return found if place.expert is None else unpacked(found, place)


def published_of(settings: RunSettings, shapes: Mapping[str, Sequence[int]], folder: Path | None) -> PublishedWeights | None:
    """The weights that a run starts from; None for a run that starts from random values."""
    return PublishedWeights(folder, shapes, settings.architecture, settings.training.sequence_length) if folder is not None else None


def load_weights(model: nn.Module, found: PublishedWeights) -> None:
    """Fills every parameter and buffer that this rank holds, sharded or not. Adapters keep their first values."""
    for name, tensor in named_tensors(model):
        whole = found.whole(name)
        if whole is not None:
            fill(tensor, whole.to(tensor.device))


def published_tensors(
    whole: Iterable[tuple[str, Tensor]], shapes: Mapping[str, Any], lora: Lora | None, architecture: Architecture
) -> Iterator[Piece]:
    """Whole tensors, or rows of them, under their published names, one at a time, adapters merged in."""
    return packed(_merged(whole, shapes, lora, architecture))


def _merged(
    whole: Iterable[tuple[str, Tensor]], shapes: Mapping[str, Any], lora: Lora | None, architecture: Architecture
) -> Iterator[tuple[Place, Tensor]]:
    held: dict[str, Tensor] = {}
    for name, tensor in whole:
        layer, _, kind = name.rpartition(".")
        if lora is not None and kind != "bias" and f"{layer}.lora_b" in shapes:
            # A layer's weight, lora_a and lora_b follow each other.
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
    """Writes model.safetensors on rank 0, in the precision of the run; every rank must walk through `whole`."""
    tensors = published_tensors(whole, shapes, training.lora, architecture)
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
            sizes[place.tensor] = (_dtype(name, dtype), packed_shape(place, shape, architecture.experts))
    copies = repeated_names(architecture)
    sizes |= {copy: sizes[original] for copy, original in copies.items()}
    write_file(folder / "model.safetensors", _repeated(tensors, copies), sizes)


def _repeated(tensors: Iterable[Piece], copies: Mapping[str, str]) -> Iterator[Piece]:
    """Each of them, and those that files have several times under their other names too."""
    for piece in tensors:
        yield piece
        yield from ((copy, piece[1]) for copy, original in copies.items() if original == piece[0])


def _dtype(name: str, dtype: torch.dtype) -> torch.dtype:
    """Biases of the choice of experts stay exact, as published files have them."""
    return torch.float32 if name.endswith("choice_bias") else dtype
