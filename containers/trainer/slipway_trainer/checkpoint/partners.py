"""Which rank of another host has a copy of the state of which rank."""

from collections.abc import Sequence
from dataclasses import dataclass


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
        """The ranks of other hosts with the same shards. Replicas are the outermost dimension of the mesh (mesh.py)."""
        apart = self.ranks // self.replicate
        return [other for other in range(rank % apart, self.ranks, apart) if other // self.per_host != rank // self.per_host]
