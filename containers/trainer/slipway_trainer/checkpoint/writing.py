"""Writes one checkpoint from the copy of the state, either in a thread or in the checkpoint process."""

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.planner import SavePlanner

from slipway_trainer.checkpoint.committed import delete_checkpoint, folder_of, to_delete
from slipway_trainer.checkpoint.store import Store
from slipway_trainer.checkpoint.writer import ObjectStoreWriter


def first_reason(error: BaseException) -> str:
    """One line that describes a failure. DCP passes the failures of all ranks to every rank, each with its stack."""
    if isinstance(error, CheckpointException) and error.failures:
        rank, (cause, _) = min(error.failures.items(), key=lambda item: item[0])
        return f"rank {rank}: {cause}"
    return str(error)


class CheckpointWriter:
    """Writes this rank's part of the checkpoints to a store and keeps the newest `keep`. Each rank of `group` has one."""

    def __init__(self, store: Store, keep: int, group: dist.ProcessGroup | None) -> None:
        self._store, self._keep, self._group = store, keep, group
        self._rank = dist.get_rank(group)

    def write(self, facts: Mapping[str, Any], snapshot: dict[str, Any], planner: SavePlanner) -> None:
        """Writes the checkpoint of the step in `facts`, and deletes old checkpoints."""
        writer = ObjectStoreWriter(self._store, folder_of(facts["step"]), facts, self._rank)
        dcp.save(snapshot, storage_writer=writer, planner=planner, process_group=self._group)
        if self._rank == 0:
            self._tidy()

    def _tidy(self) -> None:
        """Deletes old checkpoints. Missing permissions cause an error at the first deletion instead of unnoticed costs."""
        for folder in to_delete([entry.name for entry in self._store.list("")], self._keep):
            delete_checkpoint(self._store, folder)
