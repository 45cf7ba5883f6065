"""Checkpoints that a library writes and reads by itself (SMP, DeepSpeed). The marker, and what is kept, are ours."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch.distributed as dist

from slipway_trainer.checkpoint.committed import MARKER, committed_record, delete_checkpoint, folder_of, to_delete, write_marker
from slipway_trainer.checkpoint.saver import Saved
from slipway_trainer.checkpoint.store import Store, Written
from slipway_trainer.exits import CheckpointFailed


class LibraryCheckpoints(Protocol):
    """A library's own way to write and read the whole state of model and optimizer. Every rank calls both."""

    #: As COMMITTED.json names it.
    format: str

    def write(self, uri: str) -> None:
        """Writes a checkpoint below `uri`, and is done when this returns."""

    def read(self, uri: str) -> None:
        """Takes back what `write` wrote."""


class LibrarySaver:
    """Saves that training waits for. The same calls as CheckpointSaver."""

    def __init__(self, store: Store, keep: int, group: dist.ProcessGroup, library: LibraryCheckpoints) -> None:
        self._store, self._keep, self._group, self._library = store, keep, group, library
        self._saved: Saved | None = None

    def start(self, step: int, _state: Mapping[str, Any], facts: Mapping[str, Any]) -> Saved | None:
        """Writes a checkpoint by the library's own means and waits for it. Returns the save before it. Raises CheckpointFailed."""
        before, self._saved = self._saved, None
        began, folder = time.monotonic(), folder_of(step)
        if dist.get_rank() == 0:
            # A step that is written again after a resume must not look complete meanwhile.
            self._store.delete(f"{folder}/{MARKER}")
        dist.barrier(self._group)
        try:
            self._library.write(f"{self._store.uri}/{folder}")
        except Exception as error:
            raise CheckpointFailed(f"a checkpoint could not be written: {error}") from error
        dist.barrier(self._group)
        if dist.get_rank() == 0:
            self._commit(folder, facts)
        seconds = time.monotonic() - began
        self._saved = Saved(step, f"{self._store.uri}/{folder}", seconds, seconds)
        return before

    def _commit(self, folder: str, facts: Mapping[str, Any]) -> None:
        """Sizes alone: a digest would mean to read everything again."""
        objects = [Written(found.name, found.bytes, "") for found in self._store.list(folder + "/")]
        write_marker(self._store, folder, committed_record(facts, objects, folder, self._library.format))
        for old in to_delete([entry.name for entry in self._store.list("")], self._keep):
            delete_checkpoint(self._store, old)

    def finished(self) -> Saved | None:
        """The last save, once; None when it was asked for before."""
        saved, self._saved = self._saved, None
        return saved

    def wait(self) -> Saved | None:
        """As `finished`: no save is ever under way here."""
        return self.finished()

    def close(self) -> None:
        """Nothing runs in the background."""
