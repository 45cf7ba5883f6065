"""Determines the step of the model and optimizer state, from a thread other than training.

The host launches a step before the previous one has completed. When a collective hangs, later updates wait on the GPU: the state is that of
the last completed update until the next one starts. Both are CUDA events in the stream of the updates, so the device determines the answer.
Launched updates cannot be stopped; a thread that copies the state checks again afterwards and discards the copy if the state has changed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

#: Maximum number of concurrent updates, plus the one before them.
REMEMBERED = 3


def _marked(device: torch.device) -> Any:
    """A point in the order of work: its `query` says whether the preceding work is complete, as on a CPU when a call returns."""
    if device.type != "cuda":
        return SimpleNamespace(query=lambda: True)
    event = torch.cuda.Event()
    event.record()
    return event


@dataclass
class _Update:
    facts: Mapping[str, Any]
    begun: Any
    ended: Any = None


class Standing:
    """The last updates of one rank's state. `mark`: records a mark in the stream of the updates, such as torch.cuda.Event."""

    def __init__(self, device: torch.device, mark: Callable[[], Any] | None = None) -> None:
        self._mark = mark or partial(_marked, device)
        # Replaced instead of mutated, because another thread reads it.
        self._updates: tuple[_Update, ...] = ()

    @contextmanager
    def update(self, facts: Mapping[str, Any]) -> Iterator[None]:
        """Context for the launch of an update, after which `facts` describe the state."""
        update = _Update(facts, self._mark())
        self._updates = (*self._updates[1 - REMEMBERED :], update)
        yield
        update.ended = self._mark()

    def newest(self) -> Mapping[str, Any] | None:
        """The facts of the current state; None before the first update and during an update."""
        facts = None
        for update in self._updates:
            if not update.begun.query():
                break
            if update.ended is None or not update.ended.query():
                return None
            facts = update.facts
        return facts

    def still(self, facts: Mapping[str, Any]) -> bool:
        """Whether no update has started since `newest` returned these facts, so that a copy made in between belongs to one step."""
        return self.newest() is facts
