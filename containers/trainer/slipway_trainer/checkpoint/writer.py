"""A DCP storage writer for a Store: one object per rank, then `.metadata`, and finally COMMITTED.json.

The layout is DCP's own (`__<rank>_0.distcp` with one torch.save blob per shard), so that other tools can read it.
"""

import io
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItemType
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

from slipway_trainer.checkpoint.committed import MARKER, committed_record, write_marker
from slipway_trainer.checkpoint.store import Store, Written, write_object

METADATA = ".metadata"


@dataclass(frozen=True)
class _Placed:
    """The location of a shard and its completed object; used only to send results from a rank to the coordinator."""

    offset: int
    length: int
    written: Written


class ObjectStoreWriter(StorageWriter):
    """Writes one checkpoint to `folder`. `facts`: fields of COMMITTED.json, used on the coordinator."""

    def __init__(self, store: Store, folder: str, facts: Mapping[str, Any], rank: int) -> None:
        self._store, self._folder, self._facts, self._rank = store, folder, facts, rank
        #: What other checkpoints of the same tensors have as well: this rank's plan, the offset and length of each of its items in its
        #: object, and on the coordinator the content of `.metadata`.
        self.plan = SavePlan([])
        self.places: list[tuple[int, int]] = []
        self.metadata = b""

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Does nothing: a writer is used for one checkpoint."""

    def set_up_storage_writer(self, is_coordinator: bool, *_args: Any, **_kwargs: Any) -> None:
        if is_coordinator:
            # A step that is written again after a resume must not count as complete until the end.
            self._store.delete(f"{self._folder}/{MARKER}")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        results, written = [], self.write_items(plan, planner)
        if written is not None:
            places = zip(plan.items, self.places, strict=True)
            results = [WriteResult(item.index, length, _Placed(offset, length, written)) for item, (offset, length) in places]
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future

    def write_items(self, plan: SavePlan, planner: SavePlanner) -> Written | None:
        """Writes the object of this rank; None if it has no items."""
        self.plan = plan
        if not plan.items:
            return None
        writer = self._store.open(f"{self._folder}/{self._file}")
        offset = 0
        try:
            for item in plan.items:
                if item.type == WriteItemType.BYTE_IO:
                    raise TypeError(f"{item.index.fqn}: a checkpoint can contain only tensors")
                blob = io.BytesIO()
                torch.save(planner.resolve_data(item).detach().cpu(), blob)
                data = blob.getbuffer()
                writer.write(data)
                self.places.append((offset, len(data)))
                offset += len(data)
            return writer.close()
        except BaseException:
            writer.abort()
            raise

    @property
    def _file(self) -> str:
        return f"__{self._rank}_0.distcp"

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """On the coordinator, after all ranks have written: writes the metadata, then the marker."""
        flat = [result for of_rank in results for result in of_rank]
        prefix = self._folder + "/"
        metadata.storage_data = {
            result.index: _StorageInfo(
                result.storage_data.written.name.removeprefix(prefix), result.storage_data.offset, result.storage_data.length
            )
            for result in flat
        }
        metadata.storage_meta = None
        self.metadata = pickle.dumps(metadata)
        objects = {result.storage_data.written.name: result.storage_data.written for result in flat}
        self.complete(list(objects.values()), self.metadata)

    def complete(self, objects: list[Written], metadata: bytes) -> None:
        """Writes the metadata, then the marker, after all ranks have written their `objects`."""
        if foreign := [one.name for one in objects if not one.name.startswith(self._folder + "/")]:
            raise RuntimeError(f"all ranks must save the step of {self._folder}, got {foreign[0]}")
        last = write_object(self._store, f"{self._folder}/{METADATA}", metadata)
        write_marker(self._store, self._folder, committed_record(self._facts, [*objects, last], self._folder))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return True

    def storage_meta(self) -> StorageMeta | None:
        return None
