"""`checkpoints.memory` of a run: how often and how many times the state is copied to memory, and which rank holds the copy of which."""

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Partners:
    """The ranks of a run with `per_host` ranks on each host. `replicate`: the number of replicas of the model; `copies`: 2 = with a copy on
    another host."""

    ranks: int
    per_host: int
    replicate: int
    copies: int

    @property
    def are_sent(self) -> bool:
        """Whether copies are sent to the next host. They are not if every rank has a replica on another host."""
        return self.copies > 1 and self.ranks > self.per_host and not self.are_mirrored

    @property
    def are_mirrored(self) -> bool:
        """Whether every rank has a replica on another host."""
        return all(self.mirrors(rank) for rank in range(self.ranks))

    @property
    def count(self) -> int:
        """How many copies of a rank's state there are, with that of a replica."""
        return 2 if self.are_sent or self.are_mirrored else 1

    def holder(self, rank: int) -> int:
        """The rank that holds the copy of `rank`: the one of the next host with the same local rank."""
        return (rank + self.per_host) % self.ranks

    def held_by(self, rank: int) -> int:
        """The rank whose copy `rank` holds."""
        return (rank - self.per_host) % self.ranks

    def mirrors(self, rank: int) -> Sequence[int]:
        """The ranks of other hosts with the same shards. Replicas are the outermost dimension of the mesh (fsdp2.py)."""
        apart = self.ranks // self.replicate
        return [other for other in range(rank % apart, self.ranks, apart) if other // self.per_host != rank // self.per_host]
