"""Saves checkpoints asynchronously, one at a time."""

import re
import time
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
_PEER_LOST = re.compile(r"gloo\b.*Connection (?:reset|closed) by (?:remote )?peer", re.DOTALL)


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
        self._running: Future[Saved] | None = None

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
        self._running = self._pool.submit(self._write, step, staged, facts)

    def finished(self) -> Saved | None:
        """The save in progress if it has completed, returned only once. Raises CheckpointFailed, also if the process has ended."""
        if self._running is None and self._process is not None:
            self._process.require_alive()
        return self.wait() if self._running is not None and self._running.done() else None

    def wait(self) -> Saved | None:
        """Waits for the save in progress and returns it. Raises CheckpointFailed if it failed."""
        if self._running is None:
            return None
        running, self._running = self._running, None
        try:
            return running.result()
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
