"""Copies of this rank's state in memory that survives it, and on another host, from which a restart in place continues.

A copy is taken between two steps, while the next forward and backward passes run: on a GPU, only the next update of the state waits for it.
A thread then computes its digest, marks it as complete, and exchanges it with the other hosts over TCP, so that copies do not use the
network of the collectives. The next copy is taken after the exchange is over on all ranks. Every rank therefore always has two steps, of
which at least the older one is complete everywhere.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from slipway_trainer.checkpoint.memory_file import HEADER_BYTES, HELD, OWN, Header, MemoryFile, packed, shape_of, unpacked
from slipway_trainer.checkpoint.memory_plan import Partners
from slipway_trainer.checkpoint.shared_state import local_part, pin, places_of

#: An exchange that takes longer ends the copies, not the run.
EXCHANGE_TIMEOUT = timedelta(minutes=10)
#: At the end of the run, its last copy has this long to complete.
CLOSE_SECONDS = 30.0
#: Copies are sent in messages of this size.
MESSAGE_BYTES = 256 << 20


#: Writes a complete copy as a checkpoint: its shards by name, its facts, and the seconds for which it has blocked training. Returns when
#: the shards may change.
Write = Callable[[Mapping[str, Tensor], Mapping[str, Any], float], None]


@dataclass
class Copied:
    """A copy that has been taken, or is being taken by the GPU. `began_at`: time.monotonic()."""

    slot: int
    facts: Mapping[str, Any]
    began_at: float
    #: Time for which the training thread was blocked, on a CPU.
    seconds: float
    #: What is called with the copy once it is complete.
    write: Write | None = None
    #: On a GPU: when the copy has been taken, and when the next update waits for it.
    taken: "torch.cuda.Event | None" = None
    awaited: "torch.cuda.Event | None" = None

    def seconds_blocked(self) -> float:
        """Time for which training was blocked. Waits for the copy alone: the next update may follow a collective that hangs."""
        if self.taken is None:
            return self.seconds
        self.taken.synchronize()
        if self.awaited is None or not self.awaited.query():
            return 0.0
        return max(0.0, self.awaited.elapsed_time(self.taken)) / 1000.0


@dataclass(frozen=True)
class MemorySaved:
    """A complete copy. `bytes`: of all copies of this rank's state; `copies`: how many there are."""

    step: int
    seconds: float
    seconds_blocked: float
    bytes: int
    copies: int


class MemoryCopies:
    """The copies of one rank. All ranks must take them after the same steps."""

    def __init__(self, file: MemoryFile, state: Mapping[str, Tensor], partners: Partners, group: "dist.ProcessGroup | None") -> None:
        """`group`: of all ranks, for the exchange; None if copies are not sent."""
        self.file, self._partners, self._group = file, partners, group
        #: The tensors that are copied. Others of the same names, sizes and types may take their place.
        self.state = state
        self.places = places_of(state)
        self.shape = shape_of(self.places)
        self._rank = dist.get_rank()
        self._tensors = {slot: file.tensors(slot, self.places) for slot in OWN}
        self._stream: torch.cuda.Stream | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memory-copy")
        #: The slot of the newest complete copy; the next one uses the other.
        self.newest = OWN[0]
        #: The step of the newest copy that has also been exchanged.
        self.kept_step: int | None = None
        self._copied: Copied | None = None
        self._finishing: Future[MemorySaved] | None = None
        self._failed = False
        #: Not set while a copy is handed over to be written as a checkpoint.
        self._handed = threading.Event()
        self._handed.set()
        #: The copy that no update has waited for yet.
        self._unawaited: Copied | None = None

    def pin(self) -> None:
        """Pins the slots, so that the GPU copies to them without the host."""
        self._stream = torch.cuda.Stream()
        for tensors in self._tensors.values():
            pin(tensors)

    @property
    def busy(self) -> bool:
        """Whether the last copy is not complete, here or on the host that holds it. It stays busy after an error."""
        return self._failed or self._copied is not None or self._finishing is not None

    @torch.no_grad()
    def take(self, facts: Mapping[str, Any], write: Write | None = None) -> None:
        """Copies the state, which `facts` describe, to the older slot. The state must not change before `before_update` was called.
        `write`: called with the copy once it is complete on this rank."""
        assert not self.busy, "a copy must not be taken before the last one is complete"
        began = time.monotonic()
        slot = OWN[1 - OWN.index(self.newest)]
        self.file.clear(slot)
        with self._beside():
            for name, buffer in self._tensors[slot].items():
                buffer.copy_(local_part(self.state[name]), non_blocking=self._stream is not None)
            taken = self._stream.record_event(torch.cuda.Event(enable_timing=True)) if self._stream is not None else None
        self._copied = self._unawaited = Copied(slot, facts, began, time.monotonic() - began, write, taken)

    def _beside(self) -> AbstractContextManager[Any]:
        if self._stream is None:
            return nullcontext()
        self._stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self._stream)

    def before_update(self) -> None:
        """Lets the update of the state that is launched next wait for the copy."""
        copied, self._unawaited = self._unawaited, None
        if copied is not None and copied.taken is not None:
            copied.awaited = torch.cuda.current_stream().record_event(torch.cuda.Event(enable_timing=True))
            torch.cuda.current_stream().wait_event(copied.taken)

    def sound_until(self, step: int) -> None:
        """Completes the copy in the background once its step is known to be finite."""
        if self._copied is not None and self._copied.facts["step"] <= step:
            if self._copied.write is not None:
                self._handed.clear()
            self._finishing, self._copied = self._pool.submit(self._finish, self._copied), None

    def collect(self) -> MemorySaved | None:
        """The copy that has become complete since the last call. After an error, there are no further copies in this start."""
        if self._finishing is None or not self._finishing.done():
            return None
        finishing, self._finishing = self._finishing, None
        try:
            return finishing.result()
        except Exception as error:
            self._failed = True
            print(f"no further copies of the state are kept in memory: {error}; training continues", flush=True)
            return None

    def _finish(self, copied: Copied) -> MemorySaved:
        try:
            blocked = copied.seconds_blocked()
            step = int(copied.facts["step"])
            header = Header(self._rank, step, self.file.digest(copied.slot), self.shape, copied.facts)
            self.file.commit(copied.slot, header)
            self.newest = copied.slot
            if copied.write is not None:
                copied.write(self._tensors[copied.slot], copied.facts, blocked)
        finally:
            self._handed.set()
        if self._group is not None:
            self._exchange(copied.slot, header, self._group)
        self.kept_step = step
        size = sum(place.bytes for place in self.places) * (2 if self._group is not None else 1)
        return MemorySaved(step, time.monotonic() - copied.began_at, blocked, size, self._partners.count)

    def _exchange(self, slot: int, header: Header, group: dist.ProcessGroup) -> None:
        """Sends the copy to the rank that holds it, and receives the one that this rank holds."""
        to, source = self._partners.holder(self._rank), self._partners.held_by(self._rank)
        held = HELD[OWN.index(slot)]
        self.file.clear(held)
        works = [*send(self.file, slot, header, to, group)]
        theirs = receive(self.file, held, source, group)
        for work in works:
            work.wait()
        if theirs is not None and theirs.owner == source:
            self.file.commit(held, theirs)

    def end_write(self) -> None:
        """No copy becomes a checkpoint any longer, except one that is being handed over, for which this waits."""
        if self._copied is not None:
            self._copied.write = None
        self.await_write()

    def await_write(self) -> None:
        """Waits until a copy that is being handed over may change again."""
        self._handed.wait()

    def wait(self) -> None:
        """Waits until the last copy is complete, here and on the host that holds it."""
        if self._finishing is not None:
            wait([self._finishing])

    def close(self) -> None:
        """Waits for the last copy, for a limited time, and stops the thread."""
        if self._finishing is not None:
            wait([self._finishing], CLOSE_SECONDS)
        self._pool.shutdown(wait=False, cancel_futures=True)


def send(file: MemoryFile, slot: int, header: Header, to: int, group: dist.ProcessGroup) -> list[Any]:
    """Starts to send a slot and its header."""
    head = torch.frombuffer(bytearray(packed(header)), dtype=torch.uint8)
    return [dist.isend(part, to, group=group) for part in (head, *file.content(slot).split(MESSAGE_BYTES))]


def receive(file: MemoryFile, slot: int, source: int, group: dist.ProcessGroup) -> Header | None:
    """Receives what `send` sends. Returns the header if the content belongs to it; it still has to be committed."""
    head = torch.empty(HEADER_BYTES, dtype=torch.uint8)
    for part in (head, *file.content(slot).split(MESSAGE_BYTES)):
        dist.recv(part, source, group=group)
    header = unpacked(head.numpy().tobytes())
    return header if header is not None and header.digest == file.digest(slot) else None
