"""Micro-batches of one data-parallel rank."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from slipway_trainer.exits import DataFailed, Settings
from slipway_trainer.order import SampleOrder, positions_of_rank
from slipway_trainer.settings import Training
from slipway_trainer.shard_format import read_index
from slipway_trainer.shards import TokenStream


class Batches:
    """The training data of a rank. It holds no state: any step can be asked for at any time."""

    def __init__(self, folder: Path, training: Training, vocabulary_size: int, rank: int, ranks: int) -> None:
        index = read_index(folder)
        if index.vocabulary_size > vocabulary_size:
            raise Settings([f"model.vocabularySize: must be at least the {index.vocabulary_size} of the data, got {vocabulary_size}"])
        self._stream = TokenStream(index, training.sequence_length)
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

    def epoch(self, step: int) -> int:
        """The epoch in which a step begins."""
        return self._order.epoch(step * self._training.global_batch_size)

    def numbers(self, step: int, micro_step: int) -> list[int]:
        """The samples of a micro-batch. Not for several threads at once."""
        training = self._training
        positions = positions_of_rank(step, micro_step, self._rank, self._ranks, training.micro_batch_size, training.global_batch_size)
        return [self._order.sample(position) for position in positions]

    def rows(self, numbers: Sequence[int]) -> Tensor:
        """Tokens of samples (B, L + 1), read from the shards. Raises DataFailed. Threads may share it."""
        try:
            return torch.stack([self._stream.sample(number) for number in numbers])
        except OSError as error:
            raise DataFailed(f"a sample could not be read: {error}") from error

    def micro_batch(self, step: int, micro_step: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Input and target tokens, each (B, L)."""
        rows = self.rows(self.numbers(step, micro_step))
        if device.type == "cuda":
            rows = rows.pin_memory().to(device, non_blocking=True)
        return rows[:, :-1], rows[:, 1:]


def channel_folder(name: str, environ: "dict[str, str]") -> Path:
    """The folder of a channel. Raises Settings when the run has none of that name."""
    folder = environ.get("SM_CHANNEL_" + name.upper())
    if not folder:
        known = sorted(key.removeprefix("SM_CHANNEL_").lower() for key in environ if key.startswith("SM_CHANNEL_"))
        raise Settings([f"--data-channel: must name a channel of the run ({', '.join(known) or 'it has none'}), got {name}"])
    return Path(folder)
