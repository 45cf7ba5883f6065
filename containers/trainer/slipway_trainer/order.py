"""The order of samples: a pure function of (seed, position), so that the data state is a single number.

Positions continue over all epochs. Within an epoch they are a permutation of the samples, implemented as a Feistel network, so that the
sample at any position is computed without storing the permutation.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROUNDS = 6


def _mix(value: int, key: int, mask: int) -> int:
    # A multiply-xorshift hash (the constant is the golden ratio in 64 bits). It need not be cryptographically secure.
    value = (value ^ key) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    value ^= value >> 29
    value = value * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    return (value ^ value >> 32) & mask


def permuted(index: int, count: int, keys: list[int]) -> int:
    """The image of `index` in the permutation of `count` elements with these keys."""
    half_bits = max(1, ((count - 1).bit_length() + 1) // 2)
    mask = (1 << half_bits) - 1
    # The network permutes a power of four of at most 4 * count elements; cycle walking restricts the permutation to `count` elements.
    while True:
        left, right = index >> half_bits, index & mask
        for key in keys:
            left, right = right, left ^ _mix(right, key, mask)
        index = left << half_bits | right
        if index < count:
            return index


def seed_of(channel: str, seed: int) -> int:
    """The seed of a channel in a mixture, so that channels of equal size have different orders."""
    return int.from_bytes(hashlib.sha256(f"{channel}/{seed}".encode()).digest()[:8], "big")


class SampleOrder:
    """The order of `count` samples for one seed."""

    def __init__(self, count: int, seed: int) -> None:
        if count < 1:
            raise ValueError("there must be at least one sample")
        self.count = count
        self.seed = seed
        self._epoch = -1
        self._keys: list[int] = []

    def epoch(self, position: int) -> int:
        """The epoch of a position, from 0."""
        return position // self.count

    def sample(self, position: int) -> int:
        """The sample at a position."""
        epoch = self.epoch(position)
        if epoch != self._epoch:
            pair = (f"{self.seed}/{epoch}", f"{epoch}/{self.seed}")
            digest = b"".join(hashlib.sha256(text.encode()).digest() for text in pair)
            self._epoch, self._keys = epoch, [int.from_bytes(digest[8 * index : 8 * index + 8], "big") for index in range(ROUNDS)]
        return permuted(position % self.count, self.count, self._keys)


def positions_of_rank(step: int, micro_step: int, rank: int, ranks: int, micro_batch: int, global_batch: int) -> range:
    """Positions of the samples of data-parallel `rank` of `ranks` in one micro-step.

    Step s covers positions [s * global_batch, (s + 1) * global_batch), independent of the number of ranks.
    """
    start = step * global_batch + (micro_step * ranks + rank) * micro_batch
    return range(start, start + micro_batch)


@dataclass(frozen=True)
class Skip:
    """After `step` completed steps, `batches` global batches are skipped: after a loss failure, the run goes back to an earlier checkpoint
    and skips the batches from there to the failed one. Only the list of skips is stored."""

    step: int
    batches: int


def read_skips(raw: Sequence[Mapping[str, Any]], issues: list[str]) -> tuple[Skip, ...]:
    """Parses `training.skips` of job.json; adds errors to `issues`."""
    found = []
    for entry in raw:
        step, batches = entry.get("step"), entry.get("batches")
        if not isinstance(step, int) or not isinstance(batches, int) or step < 0 or batches < 1:
            issues.append(f"training.skips: must contain a step and a number of batches each, got {dict(entry)}")
        else:
            found.append(Skip(step, batches))
    return tuple(found)


def batch_of(skips: Sequence[Skip], step: int) -> int:
    """The global batch of the next step after `step` completed steps."""
    return step + sum(skip.batches for skip in skips if skip.step <= step)


def batches_behind(skips: Sequence[Skip], step: int) -> int:
    """The data position of a checkpoint of `step`. A skip that starts at this step is not included."""
    return step + sum(skip.batches for skip in skips if skip.step < step)
