"""Saves checkpoints asynchronously, one at a time."""

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

from slipway_trainer.checkpoint.committed import folder_of
from slipway_trainer.checkpoint.process import SaverProcess, Target
from slipway_trainer.checkpoint.reader import ObjectStoreReader, TensorsOnlyPlanner
from slipway_trainer.checkpoint.staging import SharedStaging, Staging
from slipway_trainer.checkpoint.store import Store
from slipway_trainer.checkpoint.writing import CheckpointWriter, first_reason
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

    snapshot: dict[str, Any]
    began_at: float
    seconds_blocked: float


class CheckpointSaver:
    """Writes the checkpoints of a run. All ranks must call every method, in the same order."""

    def __init__(self, target: Target, group: dist.ProcessGroup, pinned: bool, process: SaverProcess | None = None) -> None:
        """`process`: writes the checkpoints; if None, a thread of this rank does."""
        self._uri, self._process = target.uri, process
        # A separate group, because its collectives run in the background, concurrently with those of training.
        self._staging: Staging = SharedStaging(pinned, process, target, group) if process else Staging(pinned)
        self._writer = None if process else CheckpointWriter(target.open(), target.keep, group)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        #: Saves that are in progress or not reported yet; one is written at a time.
        self._running: deque[Future[Saved]] = deque()

    def prepare(self, state: Mapping[str, torch.Tensor]) -> None:
        """Allocates the buffers before the first save. `state` must have the same tensors as later saves."""
        self._staging.prepare(dict(state))

    def start(self, step: int, state: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> Saved | None:
        """Copies the state and starts to write it, after waiting for the previous save, which is returned."""
        before = self.wait()
        self.write(step, self.stage(state), facts)
        return before

    def beside(self) -> AbstractContextManager[None]:
        """Context for `stage` in a thread other than training: copies do not wait for a hung kernel."""
        return self._staging.beside()

    def stage(self, state: Mapping[str, torch.Tensor]) -> Staged:
        """Copies the state to host memory. No save may be in progress."""
        began = time.monotonic()
        snapshot = self._staging.copy(dict(state))
        return Staged(snapshot, began, time.monotonic() - began)

    def write(self, step: int, staged: Staged, facts: Mapping[str, Any]) -> None:
        """Starts to write the copy of `stage`."""
        self._running.append(self._pool.submit(self._write, step, staged, facts))

    @property
    def writes_beside(self) -> bool:
        """Whether another process writes, so that `write_copy` can be used."""
        return self._process is not None

    @property
    def is_busy(self) -> bool:
        """Whether a save is in progress or not reported yet."""
        return bool(self._running)

    def write_copy(self, step: int, shards: Mapping[str, torch.Tensor], facts: Mapping[str, Any], blocked: float) -> None:
        """Writes shards that are in host memory already, in another thread than training. Returns once they may change, after a save in
        progress. `blocked`: time for which copying them has blocked training."""
        began, copied = time.monotonic(), threading.Event()

        def carry_out() -> Saved:
            try:
                snapshot = self._staging.copy(dict(shards))
            finally:
                copied.set()
            return self._write(step, Staged(snapshot, began, blocked), facts)

        self._running.append(self._pool.submit(carry_out))
        copied.wait()

    def finished(self) -> Saved | None:
        """The save in progress if it has completed, returned only once. Raises CheckpointFailed, also if the process has ended."""
        if not self._running and self._process is not None:
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
        except (Exception, CheckpointException) as error:
            raise _failure(first_reason(error)) from error

    def _write(self, step: int, staged: Staged, facts: Mapping[str, Any]) -> Saved:
        if self._process is not None:
            # The wait does not hold the GIL.
            reason = self._process.ask(dict(facts))
            if reason is not None:
                raise _failure(reason)
        else:
            assert self._writer is not None
            self._writer.write(facts, staged.snapshot, DefaultSavePlanner())
        uri = f"{self._uri}/{folder_of(step)}"
        return Saved(step, uri, staged.seconds_blocked, time.monotonic() - staged.began_at)

    def close(self) -> None:
        """Stops the thread and the process without waiting for a save in progress."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.close()


def _failure(reason: str) -> Exception:
    """The exception for a save that failed with this reason."""
    if _PEER_LOST.search(reason):
        # Another rank died during the save. Its host reports the cause; there is no problem with the storage.
        return RuntimeError(f"a checkpoint could not be written because a rank is gone: {reason}")
    return CheckpointFailed(f"a checkpoint could not be written: {reason}; see the lines above for the cause on each rank")


def load(store: Store, folder: str, state: Mapping[str, torch.Tensor], group: dist.ProcessGroup) -> set[str]:
    """Loads a checkpoint into the tensors of `state`; returns the names that the checkpoint does not contain. Raises CheckpointFailed."""
    reader = ObjectStoreReader(store, folder)
    stored = reader.read_metadata().state_dict_metadata
    wanted = {name: tensor for name, tensor in state.items() if name in stored}
    try:
        dcp.load(wanted, storage_reader=reader, planner=TensorsOnlyPlanner(), process_group=group)
    except CheckpointFailed:
        raise
    except (Exception, CheckpointException) as error:
        raise CheckpointFailed(f"{store.uri}/{folder}: could not be read: {first_reason(error)}; resume from another checkpoint") from error
    return set(state) - set(wanted)
