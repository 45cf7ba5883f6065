"""The samples of one channel, in the order in which training takes them."""

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
    """What goes with one kind of shards."""

    objective: str
    made_of: str
    samples: type[TokenStream] | type[PackedRows] | type[Pairs]


_KINDS = {
    "text": _Kind("pretrain", "text", TokenStream),
    "sft": _Kind("sft", "conversations or completions", PackedRows),
    "dpo": _Kind("dpo", "preferences", Pairs),
}


class Source:
    """The token shards of a folder as samples of a run. Raises Settings for shards that are not for this run."""

    def __init__(self, folder: Path, training: Training, vocabulary_size: int, seed: int) -> None:
        index = read_index(folder)
        if index.vocabulary_size > vocabulary_size:
            raise Settings([f"model.vocabularySize: must be at least the {index.vocabulary_size} of the data, got {vocabulary_size}"])
        kind = _KINDS[index.kind]
        if kind.objective != training.objective:
            raise Settings(
                [f"training.objective: must be {kind.objective} for shards made of {kind.made_of}, got {training.objective}; see {folder}"]
            )
        if training.document_mask and index.end_of_text is None:
            raise Settings([f"training.documentMask: must go with shards whose index names one endOfText, got none or several in {folder}"])
        self.end_of_text, self.tokenizer = index.end_of_text, index.tokenizer
        self._stream = kind.samples(index, training.sequence_length)
        self._order = SampleOrder(self._stream.samples, seed)

    @property
    def samples(self) -> int:
        """Samples of one epoch of this channel."""
        return self._stream.samples

    @property
    def digest(self) -> str:
        """Of the token shards: another data set has another one."""
        return self._stream.digest

    @property
    def cut(self) -> Cut | None:
        """Documents that are longer than a row."""
        return self._stream.cut

    def epoch(self, position: int) -> int:
        """How often all samples have been seen before a position."""
        return self._order.epoch(position)

    def number(self, position: int) -> int:
        """The sample at a position. Not for several threads at once."""
        return self._order.sample(position)

    def sample(self, number: int) -> Tensor:
        """Threads may share it."""
        return self._stream.sample(number)
