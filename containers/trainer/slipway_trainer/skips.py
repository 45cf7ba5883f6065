"""Maps a step to its batch of the data: the step number plus the batches that were skipped before.

After a loss failure, the run goes back to an earlier checkpoint and skips the batches from there to the failed one. Only the list of skips
is stored; the order of samples remains a pure function of seed and position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Skip:
    """After `step` completed steps, `batches` global batches are skipped."""

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
