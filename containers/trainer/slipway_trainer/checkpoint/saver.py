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

from slipway_trainer.checkpoint.committed import delete_checkpoint, folder_of, to_delete
from slipway_trainer.checkpoint.reader import ObjectStoreReader, TensorsOnlyPlanner
from slipway_trainer.checkpoint.staging import Staging
from slipway_trainer.checkpoint.store import Store
from slipway_trainer.checkpoint.writer import ObjectStoreWriter
from slipway_trainer.exits import CheckpointFailed

#: What the host-side group of saves says when a rank is gone (gloo transport/tcp/pair.cc); the driver counts these words as a lost peer.
_PEER_LOST = re.compile(r"gloo\b.*Connection (?:reset|closed) by (?:remote )?peer", re.DOTALL)


def first_reason(error: BaseException) -> str:
    """One line of a failure. DCP hands every rank the failures of all of them, each with its stack."""
    if isinstance(error, CheckpointException) and error.failures:
        rank, (cause, _) = min(error.failures.items(), key=lambda item: item[0])
        return f"rank {rank}: {cause}"
    return str(error)


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

    def __init__(self, store: Store, keep: int, group: dist.ProcessGroup, pinned: bool) -> None:
        self._store, self._keep = store, keep
        # A group of its own: its collectives run in the background, beside those of training.
        self._group = group
        self._rank = dist.get_rank()
        self._staging = Staging(pinned)
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
        """The running save if it has ended meanwhile; at most once for each save."""
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
            reason = first_reason(error)
            if _PEER_LOST.search(reason):
                # Another rank died during the save: its host has the cause, and storage is well.
                raise RuntimeError(f"a checkpoint could not be written because a rank is gone: {reason}") from error
            raise CheckpointFailed(f"a checkpoint could not be written: {reason}") from error

    def _write(self, step: int, staged: Staged, facts: Mapping[str, Any]) -> Saved:
        folder = folder_of(step)
        dcp.save(
            staged.snapshot,
            storage_writer=ObjectStoreWriter(self._store, folder, facts, self._rank),
            planner=DefaultSavePlanner(),
            process_group=self._group,
        )
        if self._rank == 0:
            self._tidy()
        return Saved(step, f"{self._store.uri}/{folder}", staged.seconds_blocked, time.monotonic() - staged.began_at)

    def _tidy(self) -> None:
        """Deletes what `keep` no longer asks for. A refusal shows at the first deletion, not silently as a growing bill."""
        for folder in to_delete([entry.name for entry in self._store.list("")], self._keep):
            delete_checkpoint(self._store, folder)

    def close(self) -> None:
        """Ends the threads; a save under way is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


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
