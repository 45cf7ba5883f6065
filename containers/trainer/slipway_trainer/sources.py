"""The samples of one channel in training order."""

import bisect
import os
import threading
from pathlib import Path

import torch

from slipway_trainer.examples import PackedRows, Pairs, ids_of
from slipway_trainer.exits import DataFailed, InvalidRun
from slipway_trainer.order import SampleOrder
from slipway_trainer.settings import Training
from slipway_trainer.shard_format import WIDTHS, ShardIndex, read_index


class TokenStream:
    """All shards as one stream of tokens, divided into samples of `length + 1` tokens (input and target overlap by one)."""

    #: Text is never truncated: documents continue in the next sample.
    cut = None

    def __init__(self, index: ShardIndex, length: int) -> None:
        self._width = WIDTHS[index.dtype]
        self._length = length
        self._shards = index.shards
        self.digest = index.digest
        self._starts = [0]
        for shard in index.shards:
            self._starts.append(self._starts[-1] + shard.tokens)
        self._files: dict[int, int] = {}
        self._opening = threading.Lock()
        self.samples = max(0, (self._starts[-1] - 1) // length)
        if self.samples == 0:
            raise DataFailed(f"the shards contain {self._starts[-1]} tokens; one sample needs {length + 1}")

    def sample(self, number: int) -> torch.Tensor:
        """Tokens of one sample, int64, (length + 1)."""
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
        return ids_of(self._bytes(shard, offset * self._width, count * self._width), self._width)

    def _bytes(self, shard: int, first: int, count: int) -> bytearray:
        """Reads `count` bytes of a shard. Positional reads need one request with FastFile and FSx, a memory mapping one per page."""
        data, done = bytearray(count), 0
        try:
            file = self._opened(shard)
            while done < count:
                part = os.pread(file, count - done, first + done)
                if not part:
                    raise DataFailed(f"{self._shards[shard].path}: ends {count - done} bytes too early; prepare the data again")
                data[done : done + len(part)] = part
                done += len(part)
        except OSError as error:
            raise DataFailed(f"{self._shards[shard].path}: could not be read ({error}); check that the channel contains it") from error
        return data

    def _opened(self, shard: int) -> int:
        with self._opening:
            if shard not in self._files:
                self._files[shard] = os.open(self._shards[shard].path, os.O_RDONLY)
            return self._files[shard]

    def __del__(self) -> None:
        for file in getattr(self, "_files", {}).values():
            os.close(file)


#: What shards of a kind are made of, and their samples.
_KINDS: dict[str, tuple[str, type[TokenStream] | type[PackedRows] | type[Pairs]]] = {
    "text": ("text", TokenStream),
    "sft": ("conversations or completions", PackedRows),
    "dpo": ("preferences", Pairs),
}


class Source:
    """The token shards of a folder as samples of a run. Raises InvalidRun if the shards do not match the run."""

    def __init__(self, folder: Path, training: Training, vocabulary_size: int, seed: int) -> None:
        index = read_index(folder)
        if index.vocabulary_size > vocabulary_size:
            raise InvalidRun(
                f"model.vocabularySize: must be at least the {index.vocabulary_size} of the data, got {vocabulary_size}; "
                "increase it, or prepare the data with the tokenizer of the model"
            )
        made_of, samples = _KINDS[index.kind]
        objective = "pretrain" if index.kind == "text" else index.kind
        if objective != training.objective:
            raise InvalidRun(
                f"training.objective: must be {objective} for shards made of {made_of}, got {training.objective}; see {folder}"
            )
        if training.document_mask and index.end_of_text is None:
            must = "must be used with shards whose index names one endOfText"
            raise InvalidRun(f"training.documentMask: {must}, got none or several in {folder}; prepare the data again with one tokenizer")
        self.end_of_text, self.tokenizer, self.end_of_turn = index.end_of_text, index.tokenizer, index.end_of_turn
        stream = samples(index, training.sequence_length)
        #: Number of samples in one epoch; the digest that identifies the data set; the truncated documents, None for text; and what reads
        #: the sample of a number, thread-safe.
        self.samples, self.digest, self.cut, self.sample = stream.samples, stream.digest, stream.cut, stream.sample
        self._order = SampleOrder(self.samples, seed)

    def epoch(self, position: int) -> int:
        """The epoch of a position, from 0."""
        return self._order.epoch(position)

    def number(self, position: int) -> int:
        """The sample at a position. Not thread-safe."""
        return self._order.sample(position)
