"""Which step the model and the optimizer stand at, asked from beside training.

The host launches a step before it knows how the one before ended. When a collective hangs, updates that were launched after it wait on the
GPU: the state is that of the last update that has ended, and stays so as long as the next one has not begun. Both are events of the
stream that updates run on, so the answer is the device's and not the host's. Nothing holds an update back that was launched already;
a thread that copies the state asks again afterwards, and drops the copy when the state has moved on meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

#: Updates that may be on their way at once, and the one before them.
REMEMBERED = 3


class Mark(Protocol):
    """A point in the order of work, as torch.cuda.Event is one."""

    def query(self) -> bool:
        """Whether the work before it is done."""


class _Passed:
    """A point that the host has passed: on a CPU work is done when the call returns."""

    def query(self) -> bool:
        return True


def _mark_on(device: torch.device) -> Callable[[], Mark]:
    def recorded() -> Mark:
        event = torch.cuda.Event()
        event.record()
        return event

    return recorded if device.type == "cuda" else _Passed


@dataclass
class _Update:
    facts: Mapping[str, Any]
    begun: Mark
    ended: Mark | None = None


class Standing:
    """The last updates of one rank's state. `mark`: makes a mark in the stream of the updates."""

    def __init__(self, device: torch.device, mark: Callable[[], Mark] | None = None) -> None:
        self._mark = mark or _mark_on(device)
        # Replaced and never changed: another thread reads it.
        self._updates: tuple[_Update, ...] = ()

    @contextmanager
    def update(self, facts: Mapping[str, Any]) -> Iterator[None]:
        """Around the launch of an update after which `facts` hold."""
        update = _Update(facts, self._mark())
        self._updates = (*self._updates[1 - REMEMBERED :], update)
        yield
        update.ended = self._mark()

    def newest(self) -> Mapping[str, Any] | None:
        """The facts of the state as it stands; None before the first update, and while one is being computed."""
        facts = None
        for update in self._updates:
            if not update.begun.query():
                break
            if update.ended is None or not update.ended.query():
                return None
            facts = update.facts
        return facts

    def still(self, facts: Mapping[str, Any]) -> bool:
        """Whether no update has begun since `newest` gave these facts: what was copied in between is one step's state."""
        return self.newest() is facts
