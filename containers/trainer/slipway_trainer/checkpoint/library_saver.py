"""Checkpoints in the format of a library (SMP, DeepSpeed). This module writes the marker and deletes old checkpoints."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch.distributed as dist

from slipway_trainer.checkpoint.committed import MARKER, commit, delete_old, folder_of
from slipway_trainer.checkpoint.saver import Saved
from slipway_trainer.checkpoint.store import Store, Written
from slipway_trainer.exits import CheckpointFailed


class LibraryCheckpoints(Protocol):
    """Writes and reads the complete state of model and optimizer with a library. All ranks must call both methods."""

    #: The format in COMMITTED.json.
    format: str

    def write(self, uri: str) -> None:
        """Writes a checkpoint below `uri`; it is complete when this returns."""

    def read(self, uri: str) -> None:
        """Restores the state from a checkpoint that `write` wrote."""


class LibrarySaver:
    """Saves synchronously. The interface is that of CheckpointSaver."""

    def __init__(self, store: Store, keep: int, group: dist.ProcessGroup, library: LibraryCheckpoints) -> None:
        self._store, self._keep, self._group, self._library = store, keep, group, library
        self._saved: Saved | None = None

    def start(self, step: int, _state: Mapping[str, Any], facts: Mapping[str, Any]) -> Saved | None:
        """Writes a checkpoint with the library and waits for it. Returns the previous save. Raises CheckpointFailed."""
        before, self._saved = self._saved, None
        began, folder = time.monotonic(), folder_of(step)
        if dist.get_rank() == 0:
            # A step that is written again after a resume must not count as complete until the end.
            self._store.delete(f"{folder}/{MARKER}")
        dist.barrier(self._group)
        try:
            self._library.write(f"{self._store.uri}/{folder}")
        except Exception as error:
            raise CheckpointFailed(
                f"a checkpoint could not be written: {error}; check the disk space and the permission to write under checkpoints"
            ) from error
        dist.barrier(self._group)
        if dist.get_rank() == 0:
            # With sizes only: a digest would require reading all objects again.
            objects = [Written(found.name, found.bytes, "") for found in self._store.list(folder + "/")]
            commit(self._store, folder, facts, objects, self._library.format)
            delete_old(self._store, self._keep)
        seconds = time.monotonic() - began
        self._saved = Saved(step, f"{self._store.uri}/{folder}", seconds, seconds)
        return before

    def finished(self) -> Saved | None:
        """The last save, returned only once; None if it was already returned."""
        saved, self._saved = self._saved, None
        return saved

    def wait(self) -> Saved | None:
        """Like `finished`: saves are synchronous."""
        return self.finished()

    def close(self) -> None:
        """Does nothing: there are no background threads."""
