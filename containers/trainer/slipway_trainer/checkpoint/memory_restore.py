"""Continues from copies of the state in memory after a restart in place.

All ranks agree on the newest step of which every rank's state exists with its digest: in its own memory, on the host that holds its copy,
or in a replica. Otherwise no rank uses memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from slipway_trainer.checkpoint.memory_copies import MemoryCopies, receive, send
from slipway_trainer.checkpoint.memory_file import OWN, Header
from slipway_trainer.checkpoint.memory_plan import Partners
from slipway_trainer.checkpoint.shared_state import local_part


@dataclass(frozen=True)
class Restored:
    """The record from which the run continues, and whether a state came from another host."""

    record: Mapping[str, Any]
    source: str


#: The copies in one rank's memory: the digest of what may be combined, by owner and step.
Offer = Mapping[tuple[int, int], str]


class Source(NamedTuple):
    """Where a rank's state is: the rank in whose memory, and the owner of the copy, which may be a replica."""

    rank: int
    owner: int


def sources_of(step: int, kind: str, offers: Sequence[Offer], partners: Partners) -> list[Source] | None:
    """By rank, the source of its state of that step; None unless there is one for each."""
    found = []
    for rank in range(partners.ranks):
        places = [Source(rank, rank), Source(partners.holder(rank), rank), *(Source(one, one) for one in partners.mirrors(rank))]
        source = next((place for place in places if offers[place.rank].get((place.owner, step)) == kind), None)
        if source is None:
            return None
        found.append(source)
    return found


def gathered(value: Any, group: dist.ProcessGroup) -> list[Any]:
    """The values of all ranks of a group, by rank. All ranks must call it."""
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, value, group=group)
    return found


class MemoryRestore:
    """The restart of one rank. `wanted`: fields of the records from which this run may continue; `group`: of all ranks."""

    def __init__(self, copies: MemoryCopies, partners: Partners, wanted: Mapping[str, Any], group: dist.ProcessGroup) -> None:
        self._copies, self._file, self._partners, self._wanted, self._group = copies, copies.file, partners, wanted, group
        self._rank = dist.get_rank()

    def run(self, state: Mapping[str, Tensor], newer_than: int) -> Restored | None:
        """Loads the newest common copy that is not older than step `newer_than` into `state`. All other copies no longer count."""
        slots = self._slots()
        offers: list[Offer] = gathered({(header.owner, header.step): header.is_of for header in slots.values()}, self._group)
        kinds = {(step, kind) for offer in offers for (_owner, step), kind in offer.items() if step >= newer_than}
        for step, kind in sorted(kinds, reverse=True):
            sources = sources_of(step, kind, offers, self._partners)
            if sources is None:
                continue
            slot = self._collected(step, sources)
            if slot is not None:
                self._keep(step)
                return self._loaded(slot, state, sources)
        self._keep(None)
        return None

    def _slots(self) -> dict[int, Header]:
        """The copies of this run and attempt in this rank's memory, by slot."""
        found = {}
        for slot in range(self._file.slots):
            header = self._file.header(slot)
            if header is None or any(header.facts.get(name) != value for name, value in self._wanted.items()):
                continue
            if slot not in OWN or (header.owner, header.shape) == (self._rank, self._copies.shape):
                found[slot] = header
        return found

    def _slot_of(self, owner: int, step: int) -> int | None:
        return next((slot for slot, header in self._slots().items() if (header.owner, header.step) == (owner, step)), None)

    def _collected(self, step: int, sources: Sequence[Source]) -> int | None:
        """The own slot with the state of a step, which other ranks may have to send. None on all ranks unless all copies are intact."""
        used = [self._slot_of(source.owner, step) for source in sources if source.rank == self._rank]
        if not all(gathered(all(slot is not None and self._file.is_intact(slot) for slot in used), self._group)):
            self._complain(step)
            return None
        own = self._slot_of(self._rank, step) if sources[self._rank].rank == self._rank else None
        # In the same order on all ranks, so that no two wait for each other.
        for rank, source in enumerate(sources):
            if source.rank == self._rank != rank:
                slot = self._slot_of(source.owner, step)
                header = None if slot is None else self._file.header(slot)
                assert slot is not None and header is not None, "a copy that was found intact must still be there"
                for work in send(self._file, slot, header, rank, self._group):
                    work.wait()
            elif rank == self._rank != source.rank:
                own = self._receive(source.rank)
        if not all(gathered(own is not None, self._group)):
            self._complain(step)
            return None
        return own

    def _receive(self, source: int) -> int | None:
        slot = OWN[0]
        self._file.clear(slot)
        header = receive(self._file, slot, source, self._group)
        if header is None or header.shape != self._copies.shape:
            return None
        self._file.commit(slot, Header(self._rank, header.step, header.digest, header.shape, header.facts))
        return slot

    def _complain(self, step: int) -> None:
        if self._rank == 0:
            print(f"the copies of step {step} in memory are not intact on all ranks, and are not used", flush=True)

    def _keep(self, step: int | None) -> None:
        """Removes the copies of other steps: after a restart, a step may have another result."""
        for slot in range(self._file.slots):
            header = self._file.header(slot)
            if header is not None and header.step != step:
                self._file.clear(slot)

    @torch.no_grad()
    def _loaded(self, slot: int, state: Mapping[str, Tensor], sources: Sequence[Source]) -> Restored:
        header = self._file.header(slot)
        assert header is not None
        for name, tensor in self._file.tensors(slot, self._copies.places).items():
            local_part(state[name]).copy_(tensor)
        self._copies.newest = slot
        own = all(source.rank == rank for rank, source in enumerate(sources))
        return Restored(header.facts, "memory" if own else "partner")
