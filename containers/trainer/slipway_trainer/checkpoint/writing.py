"""Writes one checkpoint from the copy of the state, either in a thread or in the checkpoint process.

DCP plans each save from the start: all ranks send a description of all their shards to the coordinator, which composes the metadata and
sends each rank its part back: 90 s on 256 ranks (pytorch/pytorch#149785). The tensors of a run keep their names, shapes and shards, so only
the first save of a start is DCP's; the others write the same parts and the same metadata.
"""

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.planner import SavePlanner

from slipway_trainer.checkpoint.committed import delete_checkpoint, folder_of, to_delete
from slipway_trainer.checkpoint.store import Store, Written
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
        #: Of the save that DCP has planned; the others repeat it.
        self._first: ObjectStoreWriter | None = None

    def write(self, facts: Mapping[str, Any], snapshot: dict[str, Any], planner: SavePlanner) -> None:
        """Writes the checkpoint of the step in `facts`, and deletes old checkpoints. All snapshots must have the same tensors."""
        writer = ObjectStoreWriter(self._store, folder_of(facts["step"]), facts, self._rank)
        if self._first is None:
            dcp.save(snapshot, storage_writer=writer, planner=planner, process_group=self._group)
            self._first = writer
        else:
            planner.set_up_planner(snapshot, None, self._rank == 0)
            self._repeat(writer, planner, self._first)
        if self._rank == 0:
            self._tidy()

    def _repeat(self, writer: ObjectStoreWriter, planner: SavePlanner, first: ObjectStoreWriter) -> None:
        """Writes the parts that the first save has planned. Raises the first error of a rank on all ranks."""
        failure, written = "", None
        try:
            writer.set_up_storage_writer(self._rank == 0)
        except Exception as error:
            failure = _text(error)
        # No rank writes before the marker of an earlier save of this step was deleted.
        dist.barrier(self._group)
        if not failure:
            try:
                written = writer.write_items(first.plan, planner)
                assert writer.places == first.places, "parts have changed their sizes"
            except Exception as error:
                failure = _text(error)
        outcomes: list[tuple[str, Written | None]] | None = [("", None)] * dist.get_world_size(self._group) if self._rank == 0 else None
        dist.gather_object((failure, written), outcomes, dst=0, group=self._group)
        verdict = [self._completed(writer, outcomes, first.metadata) if outcomes is not None else ""]
        dist.broadcast_object_list(verdict, src=0, group=self._group)
        if verdict[0]:
            raise RuntimeError(verdict[0])

    @staticmethod
    def _completed(writer: ObjectStoreWriter, outcomes: list[tuple[str, Written | None]], metadata: bytes) -> str:
        """Completes the checkpoint on the coordinator; returns what has failed, "" if nothing has."""
        for rank, (failure, _written) in enumerate(outcomes):
            if failure:
                return f"rank {rank}: {failure}"
        try:
            writer.complete([written for _failure, written in outcomes if written is not None], metadata)
        except Exception as error:
            return f"rank 0: {_text(error)}"
        return ""

    def _tidy(self) -> None:
        """Deletes old checkpoints. Missing permissions cause an error at the first deletion instead of unnoticed costs."""
        for folder in to_delete([entry.name for entry in self._store.list("")], self._keep):
            delete_checkpoint(self._store, folder)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
