"""Samples of post-training data: rows of packed documents, and preference pairs.

A sample contains tokens, targets (the next token, or IGNORED where no loss is computed) and the document index of each position. Documents
are never split; documents that are longer than a row are truncated.
"""

import threading
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from slipway_trainer.exits import DataFailed
from slipway_trainer.loss import IGNORED
from slipway_trainer.shard_format import DOCUMENTS, MASK, WIDTHS, ShardIndex


def packed(lengths: Sequence[int], row: int) -> list[array]:
    """Document indices of each row. Best fit decreasing: the longest documents first, each in the row with the least remaining space.

    A pure function, so that all ranks and starts have the same rows. `lengths`: tokens per document, 1 to `row`.
    """
    rows: list[array] = []
    #: Rows by their remaining tokens, and a bit mask of the remaining lengths that occur.
    by_space: defaultdict[int, list[array]] = defaultdict(list)
    spaces = 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        length = lengths[number]
        fitting = spaces >> length
        if fitting:
            space = length + (fitting & -fitting).bit_length() - 1
            found = by_space[space].pop()
            if not by_space[space]:
                spaces &= ~(1 << space)
        else:
            space, found = row, array("I")
            rows.append(found)
        found.append(number)
        if space > length:
            by_space[space - length].append(found)
            spaces |= 1 << (space - length)
    return rows


#: Indices of the first dimension of a sample.
TOKENS, TARGETS, DOCUMENT = range(3)
#: The document index of padding, which is above those of documents.
PADDING = 2**31 - 1


@dataclass(frozen=True)
class Cut:
    """The number of documents that are longer than a row, and the number of documents (or pairs) that were dropped because truncation left
    no targets."""

    documents: int
    left_out: int


class Documents:
    """The documents of all shards with their loss masks. Shards are loaded into memory when they are first used."""

    def __init__(self, index: ShardIndex) -> None:
        self._shards, self._width = index.shards, WIDTHS[index.dtype]
        #: For each document: its shard, its offset in the shard, its length in tokens, and the index of its first target.
        self._shard, self._begins, self.lengths, self.first_targets = array("I"), array("Q"), array("I"), array("I")
        for number, shard in enumerate(self._shards):
            begin, listed = 0, array("I", _read(shard.path.with_suffix(DOCUMENTS)))
            for length in listed[::2]:
                self._shard.append(number)
                self._begins.append(begin)
                begin += length
            self.lengths.extend(listed[::2])
            self.first_targets.extend(listed[1::2])
            if begin != shard.tokens:
                raise DataFailed(
                    f"{shard.path}: must contain the {begin} tokens of its documents, got {shard.tokens}; prepare the data again"
                )
        self._read_shards: dict[int, tuple[Tensor, Tensor]] = {}
        self._reading = threading.Lock()

    def fill(self, sample: Tensor, begin: int, number: int, limit: int) -> int:
        """Copies the first `limit` tokens of a document into a sample (3, L) at `begin`; returns the end index."""
        tokens, mask = self._contents(self._shard[number])
        count = min(self.lengths[number], limit)
        here = slice(self._begins[number], self._begins[number] + count)
        sample[TOKENS, begin : begin + count] = ids_of(tokens[here], self._width)
        # The target of a position is the next token; the last position of a document has none.
        behind = sample[TOKENS, begin + 1 : begin + count]
        sample[TARGETS, begin : begin + count - 1] = torch.where(mask[here][1:] == 1, behind, IGNORED)
        return begin + count

    def _contents(self, shard: int) -> tuple[Tensor, Tensor]:
        with self._reading:
            if shard not in self._read_shards:
                path = self._shards[shard].path
                tokens = torch.frombuffer(_read(path), dtype=_stored(self._width))
                self._read_shards[shard] = tokens, torch.frombuffer(_read(path.with_suffix(MASK)), dtype=torch.uint8)
            return self._read_shards[shard]


def _read(path: Path) -> bytearray:
    try:
        return bytearray(path.read_bytes())
    except OSError as error:
        raise DataFailed(f"{path}: could not be read ({error}); check that the channel contains it") from error


def ids_of(data: bytearray | Tensor, width: int) -> Tensor:
    """Token ids of `width` bytes each. Two bytes are read as int16, because older PyTorch versions do not have uint16."""
    tokens = data if isinstance(data, Tensor) else torch.frombuffer(data, dtype=_stored(width))
    return tokens.long() & 0xFFFF if width == 2 else tokens.long()


def _stored(width: int) -> torch.dtype:
    return torch.int32 if width == 4 else torch.int16


def _empty(length: int) -> Tensor:
    sample = torch.zeros(3, length, dtype=torch.long)
    sample[TARGETS], sample[DOCUMENT] = IGNORED, PADDING
    return sample


class PackedRows:
    """Rows of `length` tokens, each packed with complete documents."""

    def __init__(self, index: ShardIndex, length: int) -> None:
        self._documents, self._length, self.digest = Documents(index), length, index.digest
        lengths, first = self._documents.lengths, self._documents.first_targets
        kept = [number for number in range(len(lengths)) if first[number] < length]
        self.cut = Cut(sum(one > length for one in lengths), len(lengths) - len(kept))
        rows = packed([min(lengths[number], length) for number in kept], length)
        self._rows = [[kept[place] for place in row] for row in rows]
        self.samples = len(rows)
        if not rows:
            raise DataFailed(
                f"the shards contain no document with a target among its first {length} tokens; "
                "increase training.sequenceLength, or check the targets of the data"
            )

    def sample(self, number: int) -> Tensor:
        """Returns (3, L). Padding at the end is a document of its own without targets."""
        sample, end = _empty(self._length), 0
        for place, document in enumerate(self._rows[number]):
            begin, end = end, self._documents.fill(sample, end, document, self._length)
            sample[DOCUMENT, begin:end] = place
        return sample


class Pairs:
    """Pairs of a chosen and a rejected document, in separate rows."""

    def __init__(self, index: ShardIndex, length: int) -> None:
        self._documents, self._length, self.digest = Documents(index), length, index.digest
        lengths, first = self._documents.lengths, self._documents.first_targets
        self._pairs = array("I", (one for one in range(0, len(lengths), 2) if max(first[one : one + 2]) < length))
        self.cut = Cut(sum(one > length for one in lengths), len(lengths) // 2 - len(self._pairs))
        self.samples = len(self._pairs)
        if not self._pairs:
            raise DataFailed(
                f"the shards contain no pair with targets among the first {length} tokens of both; "
                "increase training.sequenceLength, or check the targets of the data"
            )

    def sample(self, number: int) -> Tensor:
        """Returns (2, 3, L): the chosen and the rejected document."""
        both = torch.stack([_empty(self._length), _empty(self._length)])
        for place in range(2):
            end = self._documents.fill(both[place], 0, self._pairs[number] + place, self._length)
            both[place, DOCUMENT, :end] = 0
        return both


def trimmed(pairs: Sequence[Tensor]) -> Tensor:
    """Converts pairs (2, 3, L) to rows (B, 3, C) and removes most of the padding, which would cost as much as other tokens."""
    rows = torch.cat(list(pairs))
    needed = int((rows[:, TARGETS] != IGNORED).any(dim=0).nonzero().max()) + 1
    return rows[:, :, : min(rows.size(2), row_length(needed))]


def row_length(needed: int) -> int:
    """Rounds up to one of a few lengths, eight per power of two from 1,024 tokens, all multiples of 128. This limits the number of compiled
    kernels, and padding to an eighth of a row."""
    step = max(128, 1 << (needed - 1).bit_length() >> 4)
    return -(-needed // step) * step
