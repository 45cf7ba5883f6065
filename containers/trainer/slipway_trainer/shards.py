"""Token shards: what the tokenise step writes and the trainer reads.

A folder holds `*.bin` files (little-endian uint16 or uint32 token ids, nothing else) and one or more `index*.json`, each listing
shards with their token counts and digests; several hosts of a tokenise job write one index each.
"""

import bisect
import json
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from slipway_trainer.exits import DataFailed

SCHEMA = 1
#: Bytes of a token by the index's `dtype`.
WIDTHS = {"uint16": 2, "uint32": 4}


@dataclass(frozen=True)
class Shard:
    path: Path
    tokens: int


@dataclass(frozen=True)
class ShardIndex:
    """All shards of a folder in the order of their names."""

    shards: tuple[Shard, ...]
    dtype: str
    vocabulary_size: int


def read_index(folder: Path) -> ShardIndex:
    """The merged index of a folder. Raises DataFailed when shards are missing, cut short or do not fit together."""
    files = sorted(folder.glob("index*.json"))
    if not files:
        raise DataFailed(f"{folder}: must hold index*.json and the shards it lists, got {_some_names(folder)}")
    shards: dict[str, int] = {}
    kinds: set[tuple[str, int]] = set()
    for file in files:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["schema"] != SCHEMA:
                raise DataFailed(f"{file}: schema must be {SCHEMA}, got {content['schema']}")
            kinds.add((content["dtype"], int(content["vocabularySize"])))
            shards.update({str(entry["name"]): int(entry["tokens"]) for entry in content["shards"]})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataFailed(f"{file}: must be an index of token shards ({error!r})") from error
    if len(kinds) != 1:
        raise DataFailed(f"{folder}: all indexes must have one dtype and vocabulary, got {sorted(kinds)}")
    dtype, vocabulary_size = kinds.pop()
    if dtype not in WIDTHS:
        raise DataFailed(f"{folder}: dtype must be one of {', '.join(WIDTHS)}, got {dtype}")
    found = tuple(Shard(folder / name, shards[name]) for name in sorted(shards))
    _check_sizes(found, WIDTHS[dtype])
    return ShardIndex(found, dtype, vocabulary_size)


def _some_names(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())[:5] if folder.is_dir() else []
    return ", ".join(names) or "nothing"


def _check_sizes(shards: Sequence[Shard], width: int) -> None:
    bad = [shard.path.name for shard in shards if not shard.path.is_file() or shard.path.stat().st_size != shard.tokens * width]
    if bad:
        raise DataFailed(
            f"{len(bad)} of {len(shards)} shards are missing or have another size than the index says ({', '.join(bad[:3])}); "
            "every host needs all of them: s3DataDistribution FullyReplicated"
        )


class TokenStream:
    """All shards as one long row of tokens, cut into samples of `length + 1` (input and target overlap by one)."""

    def __init__(self, index: ShardIndex, length: int) -> None:
        self._width = WIDTHS[index.dtype]
        self._length = length
        self._shards = index.shards
        self._starts = [0]
        for shard in index.shards:
            self._starts.append(self._starts[-1] + shard.tokens)
        self._maps: dict[int, mmap.mmap] = {}
        self.samples = max(0, (self._starts[-1] - 1) // length)
        if self.samples == 0:
            raise DataFailed(f"the shards hold {self._starts[-1]} tokens; one sample needs {length + 1}")

    def sample(self, number: int) -> torch.Tensor:
        """Tokens of one sample, int64, `length + 1` of them."""
        first = number * self._length
        pieces, missing = [], self._length + 1
        shard = bisect.bisect_right(self._starts, first) - 1
        while missing > 0:
            offset = first - self._starts[shard]
            take = min(missing, self._shards[shard].tokens - offset)
            pieces.append(self._read(shard, offset, take))
            first, missing, shard = first + take, missing - take, shard + 1
        return torch.cat(pieces)

    def _read(self, shard: int, offset: int, count: int) -> torch.Tensor:
        data = self._map(shard)[offset * self._width : (offset + count) * self._width]
        if self._width == 4:
            return torch.frombuffer(bytearray(data), dtype=torch.int32).long()
        # Read as signed 16-bit: not every PyTorch that this runs on knows uint16.
        return torch.frombuffer(bytearray(data), dtype=torch.int16).long() & 0xFFFF

    def _map(self, shard: int) -> mmap.mmap:
        if shard not in self._maps:
            try:
                with self._shards[shard].path.open("rb") as handle:
                    self._maps[shard] = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise DataFailed(f"{self._shards[shard].path}: could not be read ({error})") from error
        return self._maps[shard]
