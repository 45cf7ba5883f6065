"""Memory that a rank and the process that writes its checkpoints share, with a place for every tensor of the state.

It is a file without a name (memfd_create): nothing of it stands in /dev/shm, whose size a container limits, and it is gone with the last
process that has it open, however that ends.
"""

import mmap
import os
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

#: cudaHostRegisterPortable: pinned for every context of CUDA (CUDA runtime API, 4.9 Memory Management; 2026-11-23).
_PORTABLE = 1
#: Every tensor begins at a multiple of this many bytes.
ALIGNMENT = 256


class Place(NamedTuple):
    """Where the part of a tensor that this rank holds lies: its first byte in the shared memory."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    first: int

    @property
    def bytes(self) -> int:
        """Bytes of the tensor."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


def local_part(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def places_of(state: Mapping[str, Tensor]) -> list[Place]:
    """Places for the local parts of a state, one behind the other."""
    places, first = [], 0
    for name, tensor in state.items():
        local = local_part(tensor)
        places.append(Place(name, tuple(local.shape), local.dtype, first))
        first += -(-places[-1].bytes // ALIGNMENT) * ALIGNMENT
    return places


def whole_bytes(places: list[Place]) -> int:
    """Bytes of memory that the places need; an empty file cannot be mapped."""
    return max(ALIGNMENT, max((place.first + place.bytes for place in places), default=0))


def reserve(descriptor: int, size: int) -> None:
    """Takes the memory from the host now, so that it does not run out during a save. Raises OSError when it is not there."""
    os.ftruncate(descriptor, size)
    os.posix_fallocate(descriptor, 0, size)


def tensors_at(descriptor: int, places: list[Place]) -> dict[str, Tensor]:
    """The tensors in the shared memory. Each has a storage of its own, which torch.save writes whole."""
    mapped = mmap.mmap(descriptor, whole_bytes(places))
    return {place.name: _tensor_at(mapped, place) for place in places}


def _tensor_at(mapped: mmap.mmap, place: Place) -> Tensor:
    if place.bytes == 0:
        return torch.empty(place.shape, dtype=place.dtype)
    return torch.frombuffer(mapped, dtype=torch.uint8, offset=place.first, count=place.bytes).view(place.dtype).view(place.shape)


def pin(tensors: Mapping[str, Tensor]) -> None:
    """Registers the memory of these tensors with CUDA, in one piece: its copy engine writes there without help of the host.

    Raises OSError when CUDA refuses.
    """
    filled = [tensor for tensor in tensors.values() if tensor.nbytes]
    first = min(tensor.data_ptr() for tensor in filled)
    size = max(tensor.data_ptr() + tensor.nbytes for tensor in filled) - first
    code = int(torch.cuda.cudart().cudaHostRegister(first, size, _PORTABLE))
    if code != 0:
        raise OSError(code, f"CUDA error {code} of cudaHostRegister")
