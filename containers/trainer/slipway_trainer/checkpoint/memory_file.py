"""Memory of one rank that the first process of its container owns, so that it survives rank and driver: slots for copies of the state, each
with a header.

A slot counts only with a valid header, which is written after its content and removed before the content changes. Copies of another run,
attempt, configuration or layout are ignored.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from slipway_trainer.checkpoint.shared_state import Place, reserve, tensor_at, whole_bytes

#: The slots of this rank's own state, and those of the rank for which it holds a copy. While one is written, the other is complete.
OWN, HELD = (0, 1), (2, 3)
HEADER_BYTES = 64 << 10
#: Content is summed up in pieces of this size, and padded to whole ones.
PIECE_BYTES = 64 << 10
_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Header:
    """What a slot contains. `owner`: the rank whose state it is; `digest`: of the content; `shape`: of the shards' names, sizes and types;
    `facts`: the record from which a run continues, equal on all ranks."""

    owner: int
    step: int
    digest: str
    shape: str
    facts: Mapping[str, Any]

    @property
    def is_of(self) -> str:
        """Equal for copies that may be combined: the same step of the same run."""
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()


def packed(header: Header) -> bytes:
    """The bytes of a header, with their digest. Raises ValueError if it is too long."""
    text = json.dumps(asdict(header)).encode()
    if len(text) > HEADER_BYTES - _DIGEST_BYTES:
        raise ValueError(f"the record of step {header.step} has {len(text)} bytes, more than the header of a memory copy can contain")
    text = text.ljust(HEADER_BYTES - _DIGEST_BYTES)
    return hashlib.sha256(text).digest() + text


def unpacked(data: bytes) -> Header | None:
    """The header in these bytes; None if they are not a complete header."""
    digest, text = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return Header(**json.loads(text)) if hashlib.sha256(text).digest() == digest else None


def shape_of(places: Sequence[Place]) -> str:
    """A digest of the names, sizes and types of the shards."""
    parts = [(place.name, place.shape, str(place.dtype)) for place in places]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def slot_bytes(places: Sequence[Place]) -> int:
    """Size of a slot for these shards, without its header."""
    return -(-whole_bytes(places) // PIECE_BYTES) * PIECE_BYTES


class MemoryFile:
    """The slots in the memory behind a path. `size`: of the content of a slot, equal on all ranks."""

    def __init__(self, path: str, size: int, slots: int) -> None:
        """Raises OSError if there is not enough memory."""
        self._size, self.slots = size, slots
        descriptor = os.open(path, os.O_RDWR)
        try:
            whole = self.bytes_of(size, slots)
            if os.fstat(descriptor).st_size != whole:
                os.ftruncate(descriptor, 0)
                reserve(descriptor, whole)
            self._mapped = mmap.mmap(descriptor, whole)
        finally:
            os.close(descriptor)

    @staticmethod
    def bytes_of(size: int, slots: int) -> int:
        """Memory of so many slots with their headers."""
        return slots * (HEADER_BYTES + size)

    def _first(self, slot: int) -> int:
        return slot * (HEADER_BYTES + self._size)

    def header(self, slot: int) -> Header | None:
        """The header of a slot; None if the slot does not count."""
        first = self._first(slot)
        return unpacked(self._mapped[first : first + HEADER_BYTES])

    def clear(self, slot: int) -> None:
        """Removes the header of a slot."""
        first = self._first(slot)
        self._mapped[first : first + _DIGEST_BYTES] = bytes(_DIGEST_BYTES)

    def commit(self, slot: int, header: Header) -> None:
        """Writes the header of a slot whose content is complete."""
        first = self._first(slot)
        self._mapped[first : first + HEADER_BYTES] = packed(header)

    def content(self, slot: int) -> Tensor:
        """The bytes of a slot."""
        return torch.frombuffer(self._mapped, dtype=torch.uint8, offset=self._first(slot) + HEADER_BYTES, count=self._size)

    def tensors(self, slot: int, places: Sequence[Place]) -> dict[str, Tensor]:
        """The shards in a slot."""
        first = self._first(slot) + HEADER_BYTES
        return {place.name: tensor_at(self._mapped, place._replace(first=first + place.first)) for place in places}

    def digest(self, slot: int) -> str:
        """The digest of the content: the SHA-256 of the sums of its pieces, which is as fast as the memory."""
        sums = self.content(slot).view(torch.int64).view(-1, PIECE_BYTES // 8).sum(1)
        return hashlib.sha256(sums.numpy().tobytes()).hexdigest()

    def is_intact(self, slot: int) -> bool:
        """Whether the content of a slot is that of its header."""
        header = self.header(slot)
        return header is not None and header.digest == self.digest(slot)
