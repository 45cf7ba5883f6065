"""Host memory for copies of a rank's state, with a location for every tensor.

It is an anonymous file (memfd_create), which the process that writes checkpoints maps as well: it does not use /dev/shm, whose size is
limited in containers, and is freed when the last process with the descriptor ends.
"""

import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from slipway_trainer.exits import CheckpointFailed
from slipway_trainer.sharding import local_part

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
    """Pins the memory of these tensors as one range, for asynchronous copies from the GPU. Raises OSError if CUDA returns an error."""
    filled = [tensor for tensor in tensors.values() if tensor.nbytes]
    first = min(tensor.data_ptr() for tensor in filled)
    size = max(tensor.data_ptr() + tensor.nbytes for tensor in filled) - first
    code = int(torch.cuda.cudart().cudaHostRegister(first, size, _PORTABLE))
    if code != 0:
        raise OSError(code, f"CUDA error {code} of cudaHostRegister")


class Staging:
    """Copies of local shards, so that training continues while they are written: buffers that are allocated once and reused by every
    save."""

    def __init__(self, pinned: bool, descriptor: int, made: Callable[[list[Place], Mapping[str, Tensor]], None]) -> None:
        """`pinned`: the tensors are on a GPU; `descriptor`: of the memory; `made`: called with the locations of the buffers and the
        state."""
        self._pinned, self._descriptor, self._made = pinned, descriptor, made
        self._buffers: dict[str, Tensor] = {}
        self._stream: torch.cuda.Stream | None = None

    def prepare(self, state: Mapping[str, Tensor]) -> None:
        """Allocates the buffers, so that the first save is as fast as later ones and a save during a hang needs no new pinned memory.
        Raises CheckpointFailed."""
        if self._buffers.keys() != state.keys():
            self._allocate(state)
        if self._pinned and self._stream is None:
            # The initialization at the first use of a stream waits for all running kernels (observed on an H200), including hung ones.
            self._stream = torch.cuda.Stream()
            with torch.cuda.stream(self._stream):
                torch.zeros(1, device="cuda").cpu()

    def _allocate(self, state: Mapping[str, Tensor]) -> None:
        places = places_of(state)
        size = whole_bytes(places)
        try:
            reserve(self._descriptor, size)
        except OSError as error:
            reason = f"host memory for saves: must have room for {size / 2**30:.1f} GiB beside training, got {error.strerror}"
            raise CheckpointFailed(f"{reason}; use more instances, or a type with more memory") from error
        self._buffers = tensors_at(self._descriptor, places)
        if self._pinned:
            try:
                pin(self._buffers)
            except OSError as error:
                print(f"host memory for saves is not pinned ({error}): each save blocks training for longer", flush=True)
        self._made(places, state)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Copies in this context do not wait for the kernels of training. `prepare` must have been called."""
        if self._stream is None:
            yield
            return
        with torch.cuda.stream(self._stream):
            yield

    @torch.no_grad()
    def copy(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A snapshot of `state`, valid until the next call."""
        self.prepare(state)
        for name, buffer in self._buffers.items():
            buffer.copy_(local_part(state[name]), non_blocking=self._pinned)
        if self._pinned and any(local_part(tensor).is_cuda for tensor in state.values()):
            torch.cuda.current_stream().synchronize()
        return self._buffers
