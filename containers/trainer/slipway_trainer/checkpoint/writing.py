"""Writes the checkpoints of a run: one object per rank, then `.metadata`, and finally COMMITTED.json.

The layout is DCP's own (`__<rank>_0.distcp` with one torch.save blob per shard), so that other tools can read it. `dcp.save` plans each
save from the start: all ranks send a description of all their shards to the coordinator, which composes the metadata and sends each rank
its part back: 90 s on 256 ranks (pytorch/pytorch#149785). The tensors of a run keep their names, shapes and shards, so the ranks plan only
once.
"""

import heapq
import io
import math
import pickle
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, WriteItem, WriteItemType
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from slipway_trainer.checkpoint.committed import MARKER, commit, delete_old, folder_of
from slipway_trainer.checkpoint.store import Store, Written, write_object

METADATA = ".metadata"
#: Offset and length of each item of a plan in the object of its rank.
Extents = list[tuple[int, int]]


class CheckpointWriter:
    """Writes this rank's part of the checkpoints to a store and keeps the newest `keep`. Each rank of the default group has one. `plan`:
    the shards that this rank could write; replicas that all offer are divided."""

    def __init__(self, store: Store, keep: int, plan: SavePlan) -> None:
        self._store, self._keep, self._offered = store, keep, plan
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._plan: SavePlan | None = None
        #: The extents of the first checkpoint, which all have, and on the coordinator the plans of all ranks and the content of
        #: `.metadata`.
        self._extents: Extents = []
        self._plans: list[SavePlan] = []
        self._outline: Metadata | None = None
        self._metadata = b""

    def write(self, facts: Mapping[str, Any], snapshot: Mapping[str, Tensor]) -> None:
        """Writes the checkpoint of the step in `facts`, and deletes old checkpoints. All ranks must call it, with the same tensors each
        time. Raises the first error of a rank on all ranks."""
        folder = folder_of(facts["step"])
        plan = self._plan = self._plan or self._planned()
        failure, written, extents = "", None, self._extents
        try:
            if self._rank == 0:
                # A step that is written again after a resume must not count as complete until the end.
                self._store.delete(f"{folder}/{MARKER}")
        except Exception as error:
            failure = reason_of(error)
        # No rank writes before the marker of an earlier save of this step was deleted.
        dist.barrier()
        if not failure:
            try:
                written, extents = self._write_part(folder, plan, snapshot)
                assert extents == (self._extents or extents), "parts have changed their sizes"
            except Exception as error:
                failure = reason_of(error)
        outcomes = self._at_first((failure, written, [] if self._extents else extents))
        verdict = [self._completed(folder, facts, outcomes) if self._rank == 0 else ""]
        dist.broadcast_object_list(verdict, src=0)
        if verdict[0]:
            raise RuntimeError(verdict[0])
        self._extents = extents
        if self._rank == 0:
            # Missing permissions cause an error at the first deletion instead of unnoticed costs.
            delete_old(self._store, self._keep)

    def _planned(self) -> SavePlan:
        """The part of this rank in the plan of all ranks."""
        offered, parts = self._at_first(self._offered), None
        if self._rank == 0:
            try:
                parts, self._outline = DefaultSavePlanner().create_global_plan(offered)
                self._plans = parts
            except Exception as error:
                parts = [f"rank 0: {reason_of(error)}"] * self._ranks
        own: list[Any] = [None]
        dist.scatter_object_list(own, parts, src=0)
        if isinstance(own[0], str):
            raise RuntimeError(own[0])
        return own[0]

    def _at_first(self, value: Any) -> list[Any]:
        """The values of all ranks, on the coordinator alone."""
        found: list[Any] = [None] * self._ranks if self._rank == 0 else []
        dist.gather_object(value, found if self._rank == 0 else None, dst=0)
        return found

    def _write_part(self, folder: str, plan: SavePlan, snapshot: Mapping[str, Tensor]) -> tuple[Written | None, Extents]:
        """Writes the object of this rank; None if it has no items."""
        if not plan.items:
            return None, []
        extents, offset = [], 0
        with self._store.open(f"{folder}/{_object_of(self._rank)}") as writer:
            for item in plan.items:
                if item.type == WriteItemType.BYTE_IO:
                    raise TypeError(f"{item.index.fqn}: a checkpoint can contain only tensors")
                blob = io.BytesIO()
                torch.save(snapshot[item.index.fqn], blob)
                data = blob.getbuffer()
                writer.write(data)
                extents.append((offset, len(data)))
                offset += len(data)
            return writer.close(), extents

    def _completed(self, folder: str, facts: Mapping[str, Any], outcomes: list[tuple[str, Written | None, Extents]]) -> str:
        """Completes the checkpoint on the coordinator; returns what has failed, "" if nothing has."""
        for rank, (failure, _written, _extents) in enumerate(outcomes):
            if failure:
                return f"rank {rank}: {failure}"
        try:
            if self._outline is not None:
                self._metadata = self._with_places([extents for _failure, _written, extents in outcomes], self._outline)
                self._outline, self._plans = None, []
            objects = [written for _failure, written, _extents in outcomes if written is not None]
            commit(self._store, folder, facts, [*objects, write_object(self._store, f"{folder}/{METADATA}", self._metadata)])
        except Exception as error:
            return f"rank 0: {reason_of(error)}"
        return ""

    def _with_places(self, extents: list[Extents], metadata: Metadata) -> bytes:
        """The content of `.metadata`, with the place of each shard."""
        metadata.storage_data = {
            item.index: _StorageInfo(_object_of(rank), offset, length)
            for rank, plan in enumerate(self._plans)
            for item, (offset, length) in zip(plan.items, extents[rank], strict=True)
        }
        metadata.storage_meta = None
        return pickle.dumps(metadata)


def own_part(plan: SavePlan, state: Mapping[str, Tensor]) -> SavePlan:
    """The items of a rank's plan that it writes. Replicas divide their items by size, so that DCP's coordinator gets each of them once
    instead of from every replica. `state`: the tensors of the plan. Other tensors than shards and step counts are left to DCP."""
    groups: dict[tuple[DeviceMesh, tuple[int, ...]], list[WriteItem]] = defaultdict(list)
    kept: set[int] = set()
    for item in plan.items:
        replicas = _replicas(item.index.fqn, state)
        if replicas is None:
            kept.add(id(item))
        else:
            groups[replicas].append(item)
    for (mesh, dimensions), items in groups.items():
        index, count, place = 0, 1, mesh.get_coordinate()
        assert place is not None, "a rank plans only what it has"
        for dimension in dimensions:
            index, count = index * mesh.size(dimension) + place[dimension], count * mesh.size(dimension)
        kept |= {id(item) for item in _share(items, index, count)}
    return replace(plan, items=[item for item in plan.items if id(item) in kept])


def _replicas(name: str, state: Mapping[str, Tensor]) -> tuple[DeviceMesh, tuple[int, ...]] | None:
    """The mesh, and its dimensions along which ranks have the same values of a tensor; None if that is not known here."""
    tensor = state[name]
    if isinstance(tensor, DTensor):
        found = [dimension for dimension, placement in enumerate(tensor.placements) if placement.is_replicate()]
        return tensor.device_mesh, tuple(found)
    # The count of a parameter's steps is on all ranks that have a part of it.
    beside = state.get(f"{name.removesuffix('.step')}.exp_avg") if name.endswith(".step") else None
    return (beside.device_mesh, tuple(range(beside.device_mesh.ndim))) if isinstance(beside, DTensor) else None


def _bytes(item: WriteItem) -> int:
    assert item.tensor_data is not None
    return math.prod(item.tensor_data.chunk.sizes) * item.tensor_data.properties.dtype.itemsize


def _share(items: list[WriteItem], index: int, count: int) -> list[WriteItem]:
    """The items of replica `index`, the largest first: each goes to the replica that has least."""
    loads = [(0, replica) for replica in range(count)]
    found = []
    for item in sorted(items, key=lambda item: (-_bytes(item), item.index.fqn)):
        load, replica = heapq.heappop(loads)
        heapq.heappush(loads, (load + _bytes(item), replica))
        if replica == index:
            found.append(item)
    return found


def _object_of(rank: int) -> str:
    return f"__{rank}_0.distcp"


def reason_of(error: BaseException) -> str:
    """One line that describes a failure."""
    return str(error) or type(error).__name__
