"""Micro-batches of one data-parallel rank."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from slipway_trainer.examples import DOCUMENT, TARGETS, TOKENS, PackedRows, Pairs, trimmed
from slipway_trainer.exits import DataFailed, Settings
from slipway_trainer.loss import IGNORED
from slipway_trainer.order import SampleOrder, positions_of_rank
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


class MicroBatch(NamedTuple):
    """What one rank computes at once. `targets_BL`: IGNORED where the loss is on none; `documents_BL`: None = each row is one document.

    Rows of preferences alternate: a chosen one, then the rejected one of its pair.
    """

    tokens_BL: Tensor
    targets_BL: Tensor
    documents_BL: Tensor | None = None


class Batches:
    """The training data of a rank. It holds no state: any step can be asked for at any time."""

    def __init__(self, folder: Path, training: Training, vocabulary_size: int, rank: int, ranks: int) -> None:
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
        self._end_of_text = index.end_of_text
        self._stream = kind.samples(index, training.sequence_length)
        self._order = SampleOrder(self._stream.samples, training.seed)
        self._training, self._rank, self._ranks = training, rank, ranks
        self.micro_steps = training.global_batch_size // (training.micro_batch_size * ranks)

    @property
    def samples(self) -> int:
        return self._stream.samples

    @property
    def digest(self) -> str:
        """Of the token shards: another data set has another one."""
        return self._stream.digest

    def warning(self, channel: str) -> str:
        """What was cut to the length of a row; empty where nothing was."""
        cut = self._stream.cut
        if cut is None or not cut.documents:
            return ""
        length, what = self._training.sequence_length, "pairs" if self._training.objective == "dpo" else "documents"
        return (
            f"warning: channel {channel}: {cut.documents} documents are longer than sequenceLength {length} and were cut to it; "
            f"{cut.left_out} {what} had no target left and were left out"
        )

    def epoch(self, step: int) -> int:
        """The epoch in which a step begins."""
        return self._order.epoch(step * self._training.global_batch_size)

    def numbers(self, step: int, micro_step: int) -> list[int]:
        """The samples of a micro-batch. Not for several threads at once."""
        training = self._training
        positions = positions_of_rank(step, micro_step, self._rank, self._ranks, training.micro_batch_size, training.global_batch_size)
        return [self._order.sample(position) for position in positions]

    def rows(self, numbers: Sequence[int]) -> Tensor:
        """Samples as one tensor for `split`, read from the shards. Raises DataFailed. Threads may share it."""
        try:
            samples = [self._stream.sample(number) for number in numbers]
        except OSError as error:
            raise DataFailed(f"a sample could not be read: {error}") from error
        return trimmed(samples) if self._training.objective == "dpo" else torch.stack(samples)

    def split(self, rows: Tensor) -> MicroBatch:
        """What `rows` gave, by its meaning."""
        if self._training.objective == "pretrain":
            return self._split_text(rows)
        documents_BL = rows[:, DOCUMENT] if self._training.objective == "sft" else None
        return MicroBatch(rows[:, TOKENS], rows[:, TARGETS], documents_BL)

    def _split_text(self, rows: Tensor) -> MicroBatch:
        """With `documentMask` a document begins behind each end of text, and its first token is no target: it has nothing before it. That is
        what Megatron-LM's --reset-position-ids, --reset-attention-mask and --eod-mask-loss do together, and TRL's packing."""
        tokens_BL, targets_BL = rows[:, :-1], rows[:, 1:]
        if not self._training.document_mask:
            return MicroBatch(tokens_BL, targets_BL)
        ends_BL = tokens_BL == self._end_of_text
        documents_BL = ends_BL.cumsum(dim=1) - ends_BL.long()
        return MicroBatch(tokens_BL, targets_BL.masked_fill(ends_BL, IGNORED), documents_BL)

    def micro_batch(self, step: int, micro_step: int, device: torch.device) -> MicroBatch:
        """The micro-batch of a step."""
        rows = self.rows(self.numbers(step, micro_step))
        if device.type == "cuda":
            rows = rows.pin_memory().to(device, non_blocking=True)
        return self.split(rows)


def channel_folder(name: str, environ: "dict[str, str]") -> Path:
    """The folder of a channel. Raises Settings when the run has none of that name."""
    folder = environ.get("SM_CHANNEL_" + name.upper())
    if not folder:
        known = sorted(key.removeprefix("SM_CHANNEL_").lower() for key in environ if key.startswith("SM_CHANNEL_"))
        raise Settings([f"--data-channel: must name a channel of the run ({', '.join(known) or 'it has none'}), got {name}"])
    return Path(folder)
