"""Micro-batches of a data-parallel rank."""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from slipway_trainer.examples import DOCUMENT, PADDING, TARGETS, TOKENS, trimmed
from slipway_trainer.exits import DataFailed, InvalidRun
from slipway_trainer.loss import IGNORED
from slipway_trainer.mixture import Mixture
from slipway_trainer.order import positions_of_rank, seed_of
from slipway_trainer.settings import RunSettings, Training
from slipway_trainer.shard_format import common_value
from slipway_trainer.sources import Source

#: Name of a channel, and index of one of its samples.
Sample = tuple[str, int]


class MicroBatch(NamedTuple):
    """The input of one forward pass. `targets_BL`: IGNORED where no loss is computed; `documents_BL`: document index, None if each row is
    one document; `padding_BL`: positions without a token, None if there are none.

    Rows of preference pairs alternate: a chosen row, then the rejected row of the same pair.
    """

    tokens_BL: Tensor
    targets_BL: Tensor
    documents_BL: Tensor | None = None
    padding_BL: Tensor | None = None

    @property
    def tokens(self) -> Tensor | int:
        """The number of tokens without padding; 0 if there is no padding."""
        return 0 if self.padding_BL is None else (~self.padding_BL).sum()


class Batches:
    """The training data of a rank, with random access by step."""

    def __init__(self, folders: Path | Mapping[str, Path], training: Training, vocabulary_size: int, rank: int, ranks: int) -> None:
        """`folders`: that of the only channel, or those of the channels of the mixture by name. Raises InvalidRun if channels cannot be
        combined."""
        self._mixture = Mixture(training.mixture, training.global_batch_size) if isinstance(folders, Mapping) else None
        if isinstance(folders, Mapping):
            seeds = {name: seed_of(name, training.seed) for name in folders}
            self._sources = {name: Source(folder, training, vocabulary_size, seeds[name]) for name, folder in folders.items()}
        else:
            self._sources = {"": Source(folders, training, vocabulary_size, training.seed)}
        sources = self._sources.values()
        ends = {source.end_of_text for source in sources}
        if training.document_mask and len(ends) > 1:
            found = ", ".join(map(str, sorted(ends)))
            raise InvalidRun(
                f"training.documentMask: must be used with channels that have the same endOfText, got {found}; "
                "prepare them with one tokenizer"
            )
        #: The token that ends a document, the one that ends what is trained of a conversation, and the name of the data's tokenizer; None
        #: if the shards do not define it or the channels differ.
        self.end_of_text = common_value(ends)
        self.end_of_turn = common_value({source.end_of_turn for source in sources})
        self.tokenizer = common_value({source.tokenizer for source in sources})
        self._training, self._rank, self._ranks = training, rank, ranks
        self.micro_steps = training.global_batch_size // (training.micro_batch_size * ranks)
        #: In a mixture: the step that was last requested, and the samples of its global batch.
        self._mixed: tuple[int, list[Sample]] = (-1, [])

    @property
    def samples(self) -> int:
        """Number of samples in one epoch of all channels."""
        return sum(source.samples for source in self._sources.values())

    @property
    def digest(self) -> str:
        """Digest of the token shards; it identifies the data set."""
        return _digest(self._sources) if self._mixture else next(iter(self._sources.values())).digest

    def seen(self, step: int) -> tuple[int, str]:
        """`samples` and `digest` of the channels of a mixture that are used before `step`: channels that are used only later may still
        change."""
        drawn = self.drawn(step)
        sources = {name: source for name, source in self._sources.items() if drawn[name]}
        return sum(source.samples for source in sources.values()), _digest(sources)

    @property
    def mixed(self) -> bool:
        """Whether samples come from several channels."""
        return self._mixture is not None

    def warnings(self, channel: str) -> list[str]:
        """Messages about documents that were truncated to the row length. `channel`: the name of the only channel."""
        length, what = self._training.sequence_length, "pairs" if self._training.objective == "dpo" else "documents"
        return [
            f"warning: channel {name or channel}: {source.cut.documents} documents are longer than sequenceLength {length} and were cut to "
            f"it; {source.cut.left_out} {what} had no target left and were left out"
            for name, source in self._sources.items()
            if source.cut is not None and source.cut.documents
        ]

    def drawn(self, step: int) -> dict[str, int]:
        """Number of samples of each channel before `step`; the key of an only channel is ''."""
        return self._mixture.drawn(step) if self._mixture is not None else {"": step * self._training.global_batch_size}

    def epochs(self, step: int) -> dict[str, float]:
        """Number of epochs of each channel before `step`."""
        return {name: count / self._sources[name].samples for name, count in self.drawn(step).items()}

    def epoch(self, step: int) -> int:
        """The epoch of a step; in a mixture, the highest epoch of all channels."""
        return max(self._sources[name].epoch(count) for name, count in self.drawn(step).items())

    def numbers(self, step: int, micro_step: int) -> list[Sample]:
        """The samples of a micro-batch. Not thread-safe."""
        training = self._training
        positions = positions_of_rank(step, micro_step, self._rank, self._ranks, training.micro_batch_size, training.global_batch_size)
        if self._mixture is None:
            return [("", self._sources[""].number(position)) for position in positions]
        if self._mixed[0] != step:
            self._mixed = step, self._mixture.samples(step)
        chosen = [self._mixed[1][position - step * training.global_batch_size] for position in positions]
        return [(name, self._sources[name].number(position)) for name, position in chosen]

    def first_samples(self, count: int) -> Iterator[Tensor]:
        """Yields at most `count` samples: the first ones of all channels, in turn. Raises DataFailed."""
        turns = [(name, number) for number in range(count) for name, source in self._sources.items() if number < source.samples]
        for name, number in turns[:count]:
            yield self._read(name, number)

    def _read(self, name: str, number: int) -> Tensor:
        try:
            return self._sources[name].sample(number)
        except OSError as error:
            raise DataFailed(
                f"a sample could not be read: {error}; see the log of the host for its storage, then start the run again"
            ) from error

    def rows(self, numbers: Sequence[Sample]) -> Tensor:
        """Reads samples from the shards into one tensor for `split`. Raises DataFailed. Thread-safe."""
        samples = [self._read(name, number) for name, number in numbers]
        return trimmed(samples) if self._training.objective == "dpo" else torch.stack(samples)

    def split(self, rows: Tensor) -> MicroBatch:
        """Splits the result of `rows` into tokens, targets and documents."""
        if self._training.objective != "pretrain":
            documents_BL = rows[:, DOCUMENT] if self._training.objective == "sft" else None
            return MicroBatch(rows[:, TOKENS], rows[:, TARGETS], documents_BL, rows[:, DOCUMENT] == PADDING)
        tokens_BL, targets_BL = rows[:, :-1], rows[:, 1:]
        if not self._training.document_mask:
            return MicroBatch(tokens_BL, targets_BL)
        # Each end-of-text token ends a document, and the first token of the next document is not a target, because it has no context. This
        # is equivalent to Megatron-LM's --reset-position-ids, --reset-attention-mask and --eod-mask-loss together, and to TRL's packing.
        ends_BL = tokens_BL == self.end_of_text
        documents_BL = ends_BL.cumsum(dim=1) - ends_BL.long()
        return MicroBatch(tokens_BL, targets_BL.masked_fill(ends_BL, IGNORED), documents_BL)

    def micro_batch(self, step: int, micro_step: int, device: torch.device) -> MicroBatch:
        """The micro-batch of a step on the device. Raises DataFailed."""
        rows = self.rows(self.numbers(step, micro_step))
        if device.type == "cuda":
            rows = rows.pin_memory().to(device, non_blocking=True)
        return self.split(rows)


def _digest(sources: Mapping[str, Source]) -> str:
    return hashlib.sha256("\n".join(f"{name}:{source.digest}" for name, source in sources.items()).encode()).hexdigest()


def training_folders(settings: RunSettings, environ: Mapping[str, str]) -> Path | dict[str, Path]:
    """The folder of the training channel, or those of the mixture by name. Raises InvalidRun if a channel does not exist."""
    training = settings.training
    if not training.mixture:
        return channel_folder(settings.arguments.data_channel, dict(environ), "code.arguments.data-channel")
    channels = Mixture(training.mixture, training.global_batch_size).channels
    return {name: channel_folder(name, dict(environ), "training.mixture") for name in channels}


def report_data(batches: Batches, evaluation: Batches | None, settings: RunSettings) -> None:
    """Prints the number of epochs of each channel of a mixture, and warnings of truncated documents and of a small evaluation channel."""
    arguments, steps = settings.arguments, settings.training.steps
    if batches.mixed:
        epochs = ", ".join(f"{name} {count:.2f}" for name, count in batches.epochs(steps).items())
        print(f"mixture: epochs of each channel after step {steps}: {epochs}", flush=True)
    size = settings.training.global_batch_size
    if evaluation is not None and evaluation.samples < size:
        few = f"{evaluation.samples} samples are fewer than globalBatchSize {size}"
        print(f"warning: channel {arguments.eval_channel}: {few}: some count twice in the loss of an evaluation", flush=True)
    found = ((arguments.data_channel, batches), (arguments.eval_channel, evaluation))
    for warning in [warning for name, part in found if part is not None for warning in part.warnings(name)]:
        print(warning, flush=True)


def channel_folder(name: str, environ: "dict[str, str]", option: str) -> Path:
    """The folder of channel `name`. Raises InvalidRun with `option` if the run has no such channel."""
    folder = environ.get("SM_CHANNEL_" + name.upper())
    if not folder:
        known = sorted(key.removeprefix("SM_CHANNEL_").lower() for key in environ if key.startswith("SM_CHANNEL_"))
        raise InvalidRun(
            f"{option}: must name a channel of the run ({', '.join(known) or 'it has none'}), got {name}; "
            "correct the name, or add the channel to data"
        )
    return Path(folder)


#: Number of prefetched micro-batches: a read from S3 takes 50 to 100 ms, a micro-batch of a small model less.
DEPTH = 8
THREADS = 4


class Prefetch:
    """The micro-batches of a rank in training order. Other orders work as well, without prefetching."""

    def __init__(self, batches: Batches, pinned: bool, depth: int = DEPTH) -> None:
        self._batches, self._pinned, self._depth = batches, pinned, depth
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="data")
        self._ahead: deque[tuple[tuple[int, int], Future[Tensor]]] = deque()

    def _following(self, key: tuple[int, int]) -> tuple[int, int]:
        batch, micro_step = key
        return (batch, micro_step + 1) if micro_step + 1 < self._batches.micro_steps else (batch + 1, 0)

    def _read(self, numbers: list[Sample]) -> Tensor:
        rows = self._batches.rows(numbers)
        return rows.pin_memory() if self._pinned else rows

    def _ask(self, key: tuple[int, int]) -> None:
        # The order is computed in this thread, because its cache is not thread-safe.
        self._ahead.append((key, self._pool.submit(self._read, self._batches.numbers(*key))))

    def micro_batch(self, batch: int, micro_step: int, device: torch.device) -> MicroBatch:
        """The micro-batch of a step. Raises DataFailed if it could not be read."""
        key = (batch, micro_step)
        if not self._ahead or self._ahead[0][0] != key:
            # The first micro-batch, or the first after skipped batches.
            self._drop()
            self._ask(key)
        while len(self._ahead) <= self._depth:
            self._ask(self._following(self._ahead[-1][0]))
        rows = self._ahead.popleft()[1].result()
        if device.type == "cuda":
            rows = rows.to(device, non_blocking=True)
        return self._batches.split(rows)

    def _drop(self) -> None:
        for _key, future in self._ahead:
            future.cancel()
        self._ahead.clear()

    def close(self) -> None:
        """Discards the prefetched data and stops the threads without waiting for them."""
        self._drop()
        self._pool.shutdown(wait=False, cancel_futures=True)
