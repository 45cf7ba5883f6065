"""`checkpoints.memory` of a run: how often and how many times the state is copied to memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Share of the free memory of a host that copies may use; data loading and the file cache need some as well.
SHARE_OF_FREE = 0.8


@dataclass(frozen=True)
class MemoryPlan:
    """`checkpoints.memory`. `every_steps`: None = the optimum; `copies`: 2 = one of them on another host; `files`: the memory of each rank
    of this host, which the first process of its container owns."""

    every_steps: int | None
    copies: int
    files: tuple[str, ...]


def read_memory_plan(raw: Mapping[str, Any] | None, environ: Mapping[str, str]) -> MemoryPlan | None:
    """The plan of job.json; None if copies are off, and in a container without a driver."""
    files = environ.get("SLIPWAY_MEMORY", "")
    if not raw or not files:
        return None
    every = raw.get("everySteps", "auto")
    return MemoryPlan(None if every == "auto" else int(every), int(raw.get("copies", 2)), tuple(files.split(":")))
