"""Which batch of the data a step trains on: its own number, moved on by the batches that were skipped on the way.

After a loss that left its bounds the run goes back to an earlier checkpoint and leaves out what came between it and the bad batch. The
list of such windows is all there is to remember: the order of samples stays a pure function of seed and position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Skip:
    """Before step number `step` (as many are done) `batches` global batches are left out."""

    step: int
    batches: int


def read_skips(raw: Sequence[Mapping[str, Any]], issues: list[str]) -> tuple[Skip, ...]:
    """`training.skips` of job.json."""
    found = []
    for entry in raw:
        step, batches = entry.get("step"), entry.get("batches")
        if not isinstance(step, int) or not isinstance(batches, int) or step < 0 or batches < 1:
            issues.append(f"training.skips: must hold a step and a number of batches each, got {dict(entry)}")
        else:
            found.append(Skip(step, batches))
    return tuple(found)


def batch_of(skips: Sequence[Skip], step: int) -> int:
    """The global batch that is trained on when `step` steps are done."""
    return step + sum(skip.batches for skip in skips if skip.step <= step)


def batches_behind(skips: Sequence[Skip], step: int) -> int:
    """Where a checkpoint of `step` is in the data. A window that opens there is not yet taken."""
    return step + sum(skip.batches for skip in skips if skip.step < step)
