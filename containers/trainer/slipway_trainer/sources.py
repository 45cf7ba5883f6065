"""The samples of one channel in training order."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from slipway_trainer.examples import Cut, PackedRows, Pairs
from slipway_trainer.exits import Settings
from slipway_trainer.order import SampleOrder
from slipway_trainer.settings import Training
from slipway_trainer.shard_format import read_index
from slipway_trainer.shards import TokenStream


class _Kind(NamedTuple):
    """Properties of a kind of shards."""

    objective: str
    made_of: str
    samples: type[TokenStream] | type[PackedRows] | type[Pairs]


_KINDS = {
    "text": _Kind("pretrain", "text", TokenStream),
    "sft": _Kind("sft", "conversations or completions", PackedRows),
    "dpo": _Kind("dpo", "preferences", Pairs),
}


class Source:
    """The token shards of a folder as samples of a run. Raises Settings if the shards do not match the run."""

    def __init__(self, folder: Path, training: Training, vocabulary_size: int, seed: int) -> None:
        index = read_index(folder)
        if index.vocabulary_size > vocabulary_size:
            raise Settings(
                [
                    f"model.vocabularySize: must be at least the {index.vocabulary_size} of the data, got {vocabulary_size}; "
                    "increase it, or prepare the data with the tokenizer of the model"
                ]
            )
        kind = _KINDS[index.kind]
        if kind.objective != training.objective:
            raise Settings(
                [f"training.objective: must be {kind.objective} for shards made of {kind.made_of}, got {training.objective}; see {folder}"]
            )
        if training.document_mask and index.end_of_text is None:
            must = "must be used with shards whose index names one endOfText"
            raise Settings([f"training.documentMask: {must}, got none or several in {folder}; prepare the data again with one tokenizer"])
        self.end_of_text, self.tokenizer, self.end_of_turn = index.end_of_text, index.tokenizer, index.end_of_turn
        self._stream = kind.samples(index, training.sequence_length)
        self._order = SampleOrder(self._stream.samples, seed)

    @property
    def samples(self) -> int:
        """Number of samples in one epoch of this channel."""
        return self._stream.samples

    @property
    def digest(self) -> str:
        """Digest of the token shards; it identifies the data set."""
        return self._stream.digest

    @property
    def cut(self) -> Cut | None:
        """Counts of documents that were truncated to the row length; None for text."""
        return self._stream.cut

    def epoch(self, position: int) -> int:
        """The epoch of a position, from 0."""
        return self._order.epoch(position)

    def number(self, position: int) -> int:
        """The sample at a position. Not thread-safe."""
        return self._order.sample(position)

    def sample(self, number: int) -> Tensor:
        """Reads a sample. Thread-safe."""
        return self._stream.sample(number)
