"""Reads checkpoints in DCP's format from a store: each rank only the shards in its plan.

DCP's `.metadata` is a pickle. It is read with a restriction to the classes that DCP writes: otherwise anyone with write access to the
checkpoint prefix could execute code on every trainer.
"""

import io
import os
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from slipway_trainer.checkpoint.store import Store, storage_failure, unanswered
from slipway_trainer.checkpoint.writing import METADATA
from slipway_trainer.exits import CheckpointFailed, TrainerError

PARALLEL_READS = 8
#: Module -> names. Dtypes and layouts are created with small functions of torch.
ALLOWED = {
    "torch.distributed.checkpoint.metadata": {
        "Metadata",
        "MetadataIndex",
        "TensorStorageMetadata",
        "TensorProperties",
        "ChunkStorageMetadata",
        "StorageMeta",
        "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch": {
        "Size", "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "int64", "int32", "int16", "int8", "uint8", "bool", "strided", "device",
    },
    "torch.serialization": {"_get_layout"},
    "collections": {"OrderedDict"},
    # DCP's own writer stores the folder in which the checkpoint was written.
    "pathlib": {"PosixPath"},
}  # fmt: skip


class _AllowListed(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in ALLOWED.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed in checkpoint metadata")


def read_metadata(data: bytes) -> Metadata:
    """The metadata of a checkpoint. Raises CheckpointFailed for corrupt data and for classes other than DCP's."""
    try:
        found = _AllowListed(io.BytesIO(data)).load()
    except Exception as error:  # A malicious or corrupt pickle may raise any exception.
        raise CheckpointFailed(f".metadata: could not be read ({error}); resume from another checkpoint") from error
    if not isinstance(found, Metadata):
        raise CheckpointFailed(f".metadata: must contain DCP's Metadata, got {type(found).__name__}; resume from another checkpoint")
    return found


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
        data = io.BytesIO(self._store.read(self._prefix + place.relative_path, place.offset, place.length))
        # torch.load does not compare the checksums that torch.save has written.
        if damaged := zipfile.ZipFile(data).testzip():
            where = f"{item.storage_index.fqn}: {damaged} in {place.relative_path}"
            raise CheckpointFailed(f"{where} differs from its checksum; resume from another checkpoint")
        data.seek(0)
        tensor = torch.load(data, map_location="cpu", weights_only=True)
        for dimension, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
            tensor = tensor.narrow(dimension, start, length)
        return tensor

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return True


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Converts what goes wrong while the checkpoint at `place` is read: CheckpointFailed blames it, which an outage does not. Errors of
    collectives and of GPU memory stay: they have another cause."""
    try:
        yield
    except (TrainerError, dist.DistError, torch.cuda.OutOfMemoryError):
        raise
    except (Exception, CheckpointException) as error:
        if "gloo/transport/" in str(error):
            raise
        # The failures of all ranks, each with its stack; that of a damaged object counts before an outage.
        failures = error.failures if isinstance(error, CheckpointException) else {}
        causes = [(f"rank {rank}: ", cause) for rank, (cause, _stack) in sorted(failures.items())] or [("", error)]
        where, cause = min(causes, key=lambda one: unanswered(one[1]))
        raise storage_failure(
            f"{place}: could not be read: {where}{cause}", cause, CheckpointFailed, "resume from another checkpoint"
        ) from error


def load(store: Store, folder: str, state: Mapping[str, torch.Tensor], group: dist.ProcessGroup) -> set[str]:
    """Loads a checkpoint into the tensors of `state`; returns the names that the checkpoint does not contain. Raises CheckpointFailed."""
    reader = ObjectStoreReader(store, folder)
    with reading(f"{store.uri}/{folder}"):
        stored = reader.read_metadata().state_dict_metadata
        wanted = {name: tensor for name, tensor in state.items() if name in stored}
        dcp.load(wanted, storage_reader=reader, planner=TensorsOnlyPlanner(), process_group=group)
    return set(state) - set(wanted)
