"""A DCP storage reader for a Store: each rank reads only the shards in its plan."""

import io
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from slipway_trainer.checkpoint.metadata import read_metadata
from slipway_trainer.checkpoint.store import Store
from slipway_trainer.checkpoint.writer import METADATA
from slipway_trainer.exits import CheckpointFailed

PARALLEL_READS = 8


class TensorsOnlyPlanner(DefaultLoadPlanner):
    """DCP's planner without support for objects other than tensors, which would be unpickled."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        raise CheckpointFailed(
            f"{read_item.dest_index.fqn}: only tensors are read from a checkpoint; resume from a checkpoint of this trainer"
        )


class ObjectStoreReader(StorageReader):
    """Reads the checkpoint in `folder` of a store ('' = the store itself is the checkpoint)."""

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._prefix = folder + "/" if folder else ""
        self._places: dict[Any, Any] = {}

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Does nothing: a reader is used for one checkpoint."""

    def read_metadata(self, *_args: Any, **_kwargs: Any) -> Metadata:
        return read_metadata(self._store.read(self._prefix + METADATA))

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *_args: Any, **_kwargs: Any) -> None:
        self._places = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="checkpoint-read") as pool:
            # map keeps the order: two chunks of a tensor are never copied at the same time.
            for item, tensor in zip(plan.items, pool.map(self._tensor, plan.items), strict=True):
                target = planner.resolve_tensor(item).detach()
                if target.size() != tensor.size():
                    raise CheckpointFailed(
                        f"{item.storage_index.fqn}: has size {tuple(tensor.size())}, not {tuple(target.size())}; "
                        "resume with the model that wrote the checkpoint"
                    )
                target.copy_(tensor)
                planner.commit_tensor(item, target)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _tensor(self, item: ReadItem) -> torch.Tensor:
        """The part of a stored shard that the item needs."""
        if item.type == LoadItemType.BYTE_IO:
            raise CheckpointFailed(
                f"{item.storage_index.fqn}: only tensors are read from a checkpoint; resume from a checkpoint of this trainer"
            )
        place = self._places[item.storage_index]
        data = self._store.read(self._prefix + place.relative_path, place.offset, place.length)
        tensor = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        for dimension, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
            tensor = tensor.narrow(dimension, start, length)
        return tensor

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return True
