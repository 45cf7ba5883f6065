"""Saves checkpoints: asynchronously, one at a time, or with a library (SMP, DeepSpeed)."""

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException

from slipway_trainer.checkpoint.committed import MARKER, commit, delete_old, folder_of
from slipway_trainer.checkpoint.process import SaverProcess, Target
from slipway_trainer.checkpoint.shared_state import Staging
from slipway_trainer.checkpoint.store import Store, Written
from slipway_trainer.checkpoint.writing import reason_of
from slipway_trainer.exits import CheckpointFailed

#: Error of the gloo group for saves after a rank has ended (gloo transport/tcp/pair.cc); the driver classifies it as a lost peer.
_PEER_LOST = re.compile(r"gloo\b.*(?:Connection (?:reset|closed) by (?:remote )?peer|Connect timeout)", re.DOTALL)


@dataclass(frozen=True)
class Saved:
    """A completed save. `seconds_blocked`: time for which training was blocked."""

    step: int
    uri: str
    seconds_blocked: float
    seconds_total: float


@dataclass(frozen=True)
class Staged:
    """A copy of the state in host memory. `began_at`: time.monotonic()."""

    began_at: float
    seconds_blocked: float


class CheckpointSaver:
    """Writes the checkpoints of a run. All ranks must call every method, in the same order."""

    def __init__(self, target: Target, group: dist.ProcessGroup, pinned: bool, process: SaverProcess) -> None:
        """`process`: writes the checkpoints; `pinned`: the state is on a GPU."""
        self._uri, self._process = target.uri, process
        self._staging = Staging(pinned, process.descriptor, partial(process.set_up, target, group))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        #: Saves that are in progress or not reported yet; one is written at a time.
        self._running: deque[Future[Saved]] = deque()

    def prepare(self, state: Mapping[str, Tensor]) -> None:
        """Allocates the buffers before the first save. `state` must have the same tensors as later saves."""
        self._staging.prepare(state)

    def start(self, step: int, state: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Saved | None:
        """Copies the state and starts to write it, after waiting for the previous save, which is returned."""
        before = self.wait()
        self.write(step, self.stage(state), facts)
        return before

    def beside(self) -> AbstractContextManager[None]:
        """Context for `stage` in a thread other than training: copies do not wait for a hung kernel."""
        return self._staging.beside()

    def stage(self, state: Mapping[str, Tensor]) -> Staged:
        """Copies the state to host memory. No save may be in progress."""
        began = time.monotonic()
        self._staging.copy(state)
        return Staged(began, time.monotonic() - began)

    def write(self, step: int, staged: Staged, facts: Mapping[str, Any]) -> None:
        """Starts to write the copy of `stage`."""
        self._running.append(self._pool.submit(self._write, step, staged, facts))

    @property
    def is_busy(self) -> bool:
        """Whether a save is in progress or not reported yet."""
        return bool(self._running)

    def write_copy(self, step: int, shards: Mapping[str, Tensor], facts: Mapping[str, Any], blocked: float) -> None:
        """Writes shards that are in host memory already, in another thread than training. Returns once they may change, after a save in
        progress. `blocked`: time for which copying them has blocked training."""
        began, copied = time.monotonic(), threading.Event()

        def carry_out() -> Saved:
            try:
                self._staging.copy(shards)
            finally:
                copied.set()
            return self._write(step, Staged(began, blocked), facts)

        self._running.append(self._pool.submit(carry_out))
        copied.wait()

    def finished(self) -> Saved | None:
        """The save in progress if it has completed, returned only once. Raises CheckpointFailed, also if the process has ended."""
        if not self._running:
            self._process.require_alive()
        return self._oldest() if self._running and self._running[0].done() else None

    def wait(self) -> Saved | None:
        """Waits for all saves in progress and returns the newest. Raises CheckpointFailed if one failed."""
        saved = None
        while self._running:
            saved = self._oldest()
        return saved

    def _oldest(self) -> Saved:
        try:
            return self._running.popleft().result()
        except CheckpointFailed:
            raise
        except Exception as error:
            raise _failure(reason_of(error)) from error

    def _write(self, step: int, staged: Staged, facts: Mapping[str, Any]) -> Saved:
        # The wait does not hold the GIL.
        reason = self._process.ask(dict(facts))
        if reason is not None:
            raise _failure(reason)
        uri = f"{self._uri}/{folder_of(step)}"
        return Saved(step, uri, staged.seconds_blocked, time.monotonic() - staged.began_at)

    def close(self) -> None:
        """Stops the thread and the process without waiting for a save in progress."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._process.close()


def _failure(reason: str, fix: str = "see the lines above for the cause on each rank") -> Exception:
    """The exception for a save that failed with this reason."""
    if _PEER_LOST.search(reason):
        # Another rank died during the save. Its host reports the cause; there is no problem with the storage.
        return RuntimeError(f"a checkpoint could not be written because a rank is gone: {reason}")
    return CheckpointFailed(f"a checkpoint could not be written: {reason}; {fix}")


class LibraryCheckpoints(Protocol):
    """Writes and reads the complete state of model and optimizer with a library, of which this module writes only the marker. All ranks
    must call both methods."""

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
        try:
            if dist.get_rank() == 0:
                # A step that is written again after a resume must not count as complete until the end.
                self._store.delete(f"{folder}/{MARKER}")
            dist.barrier(self._group)
            self._library.write(f"{self._store.uri}/{folder}")
            dist.barrier(self._group)
            if dist.get_rank() == 0:
                # With sizes only: a digest would require reading all objects again.
                objects = [Written(found.name, found.bytes, "") for found in self._store.list(folder + "/")]
                commit(self._store, folder, facts, objects, self._library.format)
                delete_old(self._store, self._keep)
        except (Exception, CheckpointException) as error:
            raise _failure(reason_of(error), "check the disk space and the permission to write under checkpoints") from error
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
