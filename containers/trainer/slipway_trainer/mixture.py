"""Selects the channel of each sample of a mixture, as a pure function of its position, like the order of samples (order.py). Does not
import PyTorch.

In a phase, the k-th sample of a channel with share s has the key (2k + 1) / 2s, and samples are sorted by key. Therefore the channels of
every prefix of a phase are in proportion up to a few samples, and exactly after each common denominator of the shares.
"""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any


@dataclass(frozen=True)
class Phase:
    """From global batch `from_step` on, samples come from these channels, in proportion to integer weights."""

    from_step: int
    weights: tuple[tuple[str, int], ...]


def read_mixture(raw: Sequence[Mapping[str, Any]], issues: list[str]) -> tuple[Phase, ...]:
    """Parses `training.mixture` of job.json; adds errors to `issues`. lib/core/rules/data/mixture.ts has the same checks."""
    found: list[Phase] = []
    for number, entry in enumerate(raw):
        step, weights = entry.get("fromStep", 0), entry.get("weights")
        if not isinstance(weights, dict) or not weights or not all(_is_positive(weight) for weight in weights.values()):
            issues.append(f"training.mixture[{number}].weights: must have a number above 0 for each channel, got {weights}")
        elif not isinstance(step, int) or (step != 0 if not found else step <= found[-1].from_step):
            issues.append(f"training.mixture[{number}].fromStep: must be 0 in the first phase and rise from phase to phase, got {step}")
        else:
            # Weights as integers. Decimals are exact: 0.1 is a tenth.
            exact = {name: Fraction(str(weight)) for name, weight in weights.items()}
            common = lcm(*(weight.denominator for weight in exact.values()))
            found.append(Phase(step, tuple((name, int(weight * common)) for name, weight in exact.items())))
    return tuple(found)


def _is_positive(weight: Any) -> bool:
    return isinstance(weight, (int, float)) and not isinstance(weight, bool) and 0 < weight < float("inf")


class Mixture:
    """The phases of a run with `batch` samples per step."""

    def __init__(self, phases: Sequence[Phase], batch: int) -> None:
        self._phases, self._batch = phases, batch
        #: Channels of all phases, in the order of their first use.
        self.channels = list(dict.fromkeys(name for phase in phases for name, _weight in phase.weights))

    def drawn(self, step: int) -> dict[str, int]:
        """Number of samples of each channel before global batch `step`."""
        total = dict.fromkeys(self.channels, 0)
        for number, phase in enumerate(self._phases):
            end = self._phases[number + 1].from_step if number + 1 < len(self._phases) else step
            if phase.from_step < step:
                for name, count in _first(phase, (min(end, step) - phase.from_step) * self._batch).items():
                    total[name] += count
        return total

    def samples(self, step: int) -> list[tuple[str, int]]:
        """The samples of a global batch: the channel, and the index of the sample in the channel, counted over all epochs."""
        phase = self._phases[bisect.bisect_right([phase.from_step for phase in self._phases], step) - 1]
        before = self.drawn(step)
        counts = _first(phase, (step - phase.from_step) * self._batch)
        earlier = {name: before[name] - count for name, count in counts.items()}
        found = []
        for _ in range(self._batch):
            name = _next(phase, counts)
            found.append((name, earlier[name] + counts[name]))
            counts[name] += 1
        return found


def _next(phase: Phase, counts: Mapping[str, int]) -> str:
    """The channel whose next sample has the smallest key; of equal keys, the channel that is listed first."""
    common = lcm(*(weight for _name, weight in phase.weights))
    return min(phase.weights, key=lambda source: (2 * counts[source[0]] + 1) * (common // source[1]))[0]


def _first(phase: Phase, length: int) -> dict[str, int]:
    """Number of samples per channel among the first `length` samples of a phase."""
    whole = sum(weight for _name, weight in phase.weights)
    # The samples with keys up to `length`. Rounding changes each count by at most one half, so the sum may differ from `length`.
    counts = {name: (2 * length * weight + whole) // (2 * whole) for name, weight in phase.weights}
    while sum(counts.values()) < length:
        counts[_next(phase, counts)] += 1
    common = lcm(*(weight for _name, weight in phase.weights))
    while sum(counts.values()) > length:
        held = [(name, weight, order) for order, (name, weight) in enumerate(phase.weights) if counts[name]]
        last = max(held, key=lambda source: ((2 * counts[source[0]] - 1) * (common // source[1]), source[2]))
        counts[last[0]] -= 1
    return counts
