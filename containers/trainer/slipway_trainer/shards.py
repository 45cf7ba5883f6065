"""Token shards as one long row of tokens, cut into samples."""

import bisect
import mmap

import torch

from slipway_trainer.exits import DataFailed
from slipway_trainer.shard_format import WIDTHS, ShardIndex


class TokenStream:
    """All shards as one long row of tokens, cut into samples of `length + 1` (input and target overlap by one)."""

    def __init__(self, index: ShardIndex, length: int) -> None:
        self._width = WIDTHS[index.dtype]
        self._length = length
        self._shards = index.shards
        self.digest = index.digest
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
