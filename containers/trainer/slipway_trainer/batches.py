"""Micro-batches of one data-parallel rank."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from slipway_trainer.examples import DOCUMENT, TARGETS, TOKENS, trimmed
from slipway_trainer.exits import DataFailed, Settings
from slipway_trainer.loss import IGNORED
from slipway_trainer.mixture import Mixture
from slipway_trainer.order import positions_of_rank, seed_of
from slipway_trainer.settings import RunSettings, Training
from slipway_trainer.sources import Source

#: A channel, and one of its samples.
Sample = tuple[str, int]


class MicroBatch(NamedTuple):
    """What one rank computes at once. `targets_BL`: IGNORED where the loss is on none; `documents_BL`: None = each row is one document.

    Rows of preferences alternate: a chosen one, then the rejected one of its pair.
    """

    tokens_BL: Tensor
    targets_BL: Tensor
    documents_BL: Tensor | None = None


class Batches:
    """The training data of a rank. Any step can be asked for at any time."""

    def __init__(self, folders: Path | Mapping[str, Path], training: Training, vocabulary_size: int, rank: int, ranks: int) -> None:
        """`folders`: that of the only channel, or those of the channels of the run's mixture."""
        self._mixture = Mixture(training.mixture, training.global_batch_size) if isinstance(folders, Mapping) else None
        if isinstance(folders, Mapping):
            seeds = {name: seed_of(name, training.seed) for name in folders}
            self._sources = {name: Source(folder, training, vocabulary_size, seeds[name]) for name, folder in folders.items()}
        else:
            self._sources = {"": Source(folders, training, vocabulary_size, training.seed)}
        ends = {source.end_of_text for source in self._sources.values()}
        if training.document_mask and len(ends) > 1:
            raise Settings([f"training.documentMask: must go with channels of one endOfText, got {', '.join(map(str, sorted(ends)))}"])
        #: The token that ends a document; None where the shards do not say it, or the channels have several.
        self.end_of_text = ends.pop() if len(ends) == 1 else None
        names = {source.tokenizer for source in self._sources.values()}
        #: The name of the data's tokenizer, likewise.
        self.tokenizer = names.pop() if len(names) == 1 else None
        self._training, self._rank, self._ranks = training, rank, ranks
        self.micro_steps = training.global_batch_size // (training.micro_batch_size * ranks)
        #: The samples of the global batch that was asked for last, in a mixture.
        self._mixed: tuple[int, list[Sample]] = (-1, [])

    @property
    def samples(self) -> int:
        """Samples of one epoch of all channels."""
        return sum(source.samples for source in self._sources.values())

    @property
    def digest(self) -> str:
        """Of the token shards: another data set has another one."""
        return _digest(self._sources) if self._mixture else next(iter(self._sources.values())).digest

    def seen(self, step: int) -> tuple[int, str]:
        """`samples` and `digest` of the channels of a mixture from which samples come before a step: those of later phases may change."""
        drawn = self.drawn(step)
        sources = {name: source for name, source in self._sources.items() if drawn[name]}
        return sum(source.samples for source in sources.values()), _digest(sources)

    @property
    def mixed(self) -> bool:
        """Whether samples come from several channels."""
        return self._mixture is not None

    def warnings(self, channel: str) -> list[str]:
        """What was cut to the length of a row. `channel`: the name of the only one."""
        length, what = self._training.sequence_length, "pairs" if self._training.objective == "dpo" else "documents"
        return [
            f"warning: channel {name or channel}: {source.cut.documents} documents are longer than sequenceLength {length} and were cut to "
            f"it; {source.cut.left_out} {what} had no target left and were left out"
            for name, source in self._sources.items()
            if source.cut is not None and source.cut.documents
        ]

    def drawn(self, step: int) -> dict[str, int]:
        """How many samples of each channel come before a step; the only channel has the name ''."""
        return self._mixture.drawn(step) if self._mixture is not None else {"": step * self._training.global_batch_size}

    def epochs(self, step: int) -> dict[str, float]:
        """How often each channel has been seen before a step."""
        return {name: count / self._sources[name].samples for name, count in self.drawn(step).items()}

    def epoch(self, step: int) -> int:
        """The epoch in which a step begins; in a mixture that of the channel which is seen most often."""
        return max(self._sources[name].epoch(count) for name, count in self.drawn(step).items())

    def numbers(self, step: int, micro_step: int) -> list[Sample]:
        """The samples of a micro-batch. Not for several threads at once."""
        training = self._training
        positions = positions_of_rank(step, micro_step, self._rank, self._ranks, training.micro_batch_size, training.global_batch_size)
        if self._mixture is None:
            return [("", self._sources[""].number(position)) for position in positions]
        if self._mixed[0] != step:
            self._mixed = step, self._mixture.samples(step)
        chosen = [self._mixed[1][position - step * training.global_batch_size] for position in positions]
        return [(name, self._sources[name].number(position)) for name, position in chosen]

    def first_samples(self, count: int) -> Iterator[Tensor]:
        """At most so many samples, the first ones of all channels in turn. Raises DataFailed."""
        turns = [(name, number) for number in range(count) for name, source in self._sources.items() if number < source.samples]
        for name, number in turns[:count]:
            yield self._read(name, number)

    def _read(self, name: str, number: int) -> Tensor:
        try:
            return self._sources[name].sample(number)
        except OSError as error:
            raise DataFailed(f"a sample could not be read: {error}") from error

    def rows(self, numbers: Sequence[Sample]) -> Tensor:
        """Samples as one tensor for `split`, read from the shards. Raises DataFailed. Threads may share it."""
        samples = [self._read(name, number) for name, number in numbers]
        return trimmed(samples) if self._training.objective == "dpo" else torch.stack(samples)

    def split(self, rows: Tensor) -> MicroBatch:
        """What `rows` gave, by its meaning."""
        if self._training.objective == "pretrain":
            return self._split_text(rows)
        documents_BL = rows[:, DOCUMENT] if self._training.objective == "sft" else None
        return MicroBatch(rows[:, TOKENS], rows[:, TARGETS], documents_BL)

    def _split_text(self, rows: Tensor) -> MicroBatch:
        """With `documentMask` a document begins behind each end of text, and its first token is no target: it has nothing before it. That
        is what Megatron-LM's --reset-position-ids, --reset-attention-mask and --eod-mask-loss do together, and TRL's packing."""
        tokens_BL, targets_BL = rows[:, :-1], rows[:, 1:]
        if not self._training.document_mask:
            return MicroBatch(tokens_BL, targets_BL)
        ends_BL = tokens_BL == self.end_of_text
        documents_BL = ends_BL.cumsum(dim=1) - ends_BL.long()
        return MicroBatch(tokens_BL, targets_BL.masked_fill(ends_BL, IGNORED), documents_BL)

    def micro_batch(self, step: int, micro_step: int, device: torch.device) -> MicroBatch:
        """The micro-batch of a step."""
        rows = self.rows(self.numbers(step, micro_step))
        if device.type == "cuda":
            rows = rows.pin_memory().to(device, non_blocking=True)
        return self.split(rows)


def _digest(sources: Mapping[str, Source]) -> str:
    return hashlib.sha256("\n".join(f"{name}:{source.digest}" for name, source in sources.items()).encode()).hexdigest()


def training_folders(settings: RunSettings, environ: Mapping[str, str]) -> Path | dict[str, Path]:
    """The folder of the channel that a run trains on, or those of its mixture. Raises Settings when one is not there."""
    training = settings.training
    if not training.mixture:
        return channel_folder(settings.arguments.data_channel, dict(environ))
    channels = Mixture(training.mixture, training.global_batch_size).channels
    return {name: channel_folder(name, dict(environ), "training.mixture") for name in channels}


def say_data(batches: Batches, evaluation: Batches | None, settings: RunSettings) -> None:
    """Prints what a mixture will have taken of its channels in the end, and a warning for each channel of which documents were cut."""
    arguments, steps = settings.arguments, settings.training.steps
    if batches.mixed:
        epochs = ", ".join(f"{name} {count:.2f}" for name, count in batches.epochs(steps).items())
        print(f"mixture: epochs of each channel after step {steps}: {epochs}", flush=True)
    found = ((arguments.data_channel, batches), (arguments.eval_channel, evaluation))
    for warning in [warning for name, part in found if part is not None for warning in part.warnings(name)]:
        print(warning, flush=True)


def channel_folder(name: str, environ: "dict[str, str]", option: str = "--data-channel") -> Path:
    """The folder of a channel that an option names. Raises Settings when the run has none of that name."""
    folder = environ.get("SM_CHANNEL_" + name.upper())
    if not folder:
        known = sorted(key.removeprefix("SM_CHANNEL_").lower() for key in environ if key.startswith("SM_CHANNEL_"))
        raise Settings([f"{option}: must name a channel of the run ({', '.join(known) or 'it has none'}), got {name}"])
    return Path(folder)
