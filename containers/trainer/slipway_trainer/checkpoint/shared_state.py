"""Shared memory of a rank and its checkpoint process, with a location for every tensor of the state.

It is an anonymous file (memfd_create): it does not use /dev/shm, whose size is limited in containers, and is freed when the last process
with the descriptor ends.
"""

import mmap
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

#: cudaHostRegisterPortable: pinned for all CUDA contexts (CUDA runtime API, 4.9 Memory Management; 2026-11-23).
_PORTABLE = 1
#: Alignment of tensors in bytes.
ALIGNMENT = 256


class Place(NamedTuple):
    """The location of this rank's shard of a tensor. `first`: its first byte in the shared memory."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    first: int

    @property
    def bytes(self) -> int:
        """Size of the shard in bytes."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


def local_part(tensor: Tensor) -> Tensor:
    """This rank's shard of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def places_of(state: Mapping[str, Tensor]) -> list[Place]:
    """Consecutive locations for the local shards of a state."""
    places, first = [], 0
    for name, tensor in state.items():
        local = local_part(tensor)
        places.append(Place(name, tuple(local.shape), local.dtype, first))
        first += -(-places[-1].bytes // ALIGNMENT) * ALIGNMENT
    return places


def whole_bytes(places: Sequence[Place]) -> int:
    """Total size in bytes; at least ALIGNMENT, because an empty file cannot be mapped."""
    return max(ALIGNMENT, max((place.first + place.bytes for place in places), default=0))


def reserve(descriptor: int, size: int) -> None:
    """Allocates the memory immediately, so that a save cannot run out of memory. Raises OSError if there is not enough."""
    os.ftruncate(descriptor, size)
    os.posix_fallocate(descriptor, 0, size)


def tensors_at(descriptor: int, places: list[Place]) -> dict[str, Tensor]:
    """The tensors in the shared memory. Each has its own storage, because torch.save writes whole storages."""
    mapped = mmap.mmap(descriptor, whole_bytes(places))
    return {place.name: tensor_at(mapped, place) for place in places}


def tensor_at(mapped: mmap.mmap, place: Place) -> Tensor:
    """The tensor at a location of mapped memory."""
    if place.bytes == 0:
        return torch.empty(place.shape, dtype=place.dtype)
    return torch.frombuffer(mapped, dtype=torch.uint8, offset=place.first, count=place.bytes).view(place.dtype).view(place.shape)


def pin(tensors: Mapping[str, Tensor]) -> None:
    """Pins the memory of these tensors as one range, for asynchronous copies from the GPU.

    Raises OSError if CUDA returns an error.
    """
    filled = [tensor for tensor in tensors.values() if tensor.nbytes]
    first = min(tensor.data_ptr() for tensor in filled)
    size = max(tensor.data_ptr() + tensor.nbytes for tensor in filled) - first
    code = int(torch.cuda.cudart().cudaHostRegister(first, size, _PORTABLE))
    if code != 0:
        raise OSError(code, f"CUDA error {code} of cudaHostRegister")
