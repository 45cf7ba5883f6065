"""Saves in the background, one at a time, and keeps the store tidy."""

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

#: What the host-side group of saves says when a rank is gone (gloo transport/tcp/pair.cc); the driver counts these words as a lost peer.
_PEER_LOST = re.compile(r"gloo\b.*Connection (?:reset|closed) by (?:remote )?peer", re.DOTALL)


@dataclass(frozen=True)
class Saved:
    """A finished save. `seconds_blocked`: how long training stood still for it."""

    step: int
    uri: str
    seconds_blocked: float
    seconds_total: float


@dataclass(frozen=True)
class Staged:
    """A copy of the state in host memory. `began_at`: by time.monotonic."""

    snapshot: dict[str, Any]
    began_at: float
    seconds_blocked: float


class CheckpointSaver:
    """Writes checkpoints of one run. Every rank calls every method, in the same order."""

    def __init__(self, target: Target, group: dist.ProcessGroup, pinned: bool, process: SaverProcess | None = None) -> None:
        """`process`: writes them; without one a thread of this rank does."""
        self._uri, self._process = target.uri, process
        # A group of its own: its collectives run in the background, beside those of training.
        self._staging: Staging = SharedStaging(pinned, process, target, group) if process else Staging(pinned)
        self._writer = None if process else CheckpointWriter(target.open(), target.keep, group)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._running: Future[Saved] | None = None

    def prepare(self, state: Mapping[str, torch.Tensor]) -> None:
        """Before the first save, with a state of the same tensors."""
        self._staging.prepare(dict(state))

    def start(self, step: int, state: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> Saved | None:
        """Copies the state and begins to write it. Returns the save before it, which it waits for."""
        before = self.wait()
        self.write(step, self.stage(state), facts)
        return before

    def beside(self) -> AbstractContextManager[None]:
        """Around a `stage` from beside training: it does not wait for a kernel that hangs."""
        return self._staging.beside()

    def stage(self, state: Mapping[str, torch.Tensor]) -> Staged:
        """Copies the state to the host. No save may be running."""
        began = time.monotonic()
        snapshot = self._staging.copy(dict(state))
        return Staged(snapshot, began, time.monotonic() - began)

    def write(self, step: int, staged: Staged, facts: Mapping[str, Any]) -> None:
        """Begins to write what `stage` copied last."""
        self._running = self._pool.submit(self._write, step, staged, facts)

    def finished(self) -> Saved | None:
        """The running save if it has ended meanwhile; at most once for each save. Raises CheckpointFailed, also when none can be made."""
        if self._running is None and self._process is not None:
            self._process.require_alive()
        return self.wait() if self._running is not None and self._running.done() else None

    def wait(self) -> Saved | None:
        """Waits for the running save. Raises CheckpointFailed when it failed."""
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
            # The wait holds no lock of Python's.
            reason = self._process.ask(dict(facts))
            if reason is not None:
                raise _failure(reason)
        else:
            assert self._writer is not None
            self._writer.write(facts, staged.snapshot, DefaultSavePlanner())
        uri = f"{self._uri}/{folder_of(step)}"
        return Saved(step, uri, staged.seconds_blocked, time.monotonic() - staged.began_at)

    def close(self) -> None:
        """Ends the thread and the process; a save under way is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.close()


def _failure(reason: str) -> Exception:
    """The error of a save that failed for this reason."""
    if _PEER_LOST.search(reason):
        # Another rank died during the save: its host has the cause, and storage is well.
        return RuntimeError(f"a checkpoint could not be written because a rank is gone: {reason}")
    return CheckpointFailed(f"a checkpoint could not be written: {reason}")


def load(store: Store, folder: str, state: Mapping[str, torch.Tensor], group: dist.ProcessGroup) -> set[str]:
    """Loads a checkpoint into the live tensors of `state`; returns the names that the checkpoint does not have."""
    reader = ObjectStoreReader(store, folder)
    stored = reader.read_metadata().state_dict_metadata
    wanted = {name: tensor for name, tensor in state.items() if name in stored}
    try:
        dcp.load(wanted, storage_reader=reader, planner=TensorsOnlyPlanner(), process_group=group)
    except CheckpointFailed:
        raise
    except (Exception, CheckpointException) as error:
        raise CheckpointFailed(f"{store.uri}/{folder}: could not be read: {first_reason(error)}") from error
    return set(state) - set(wanted)
