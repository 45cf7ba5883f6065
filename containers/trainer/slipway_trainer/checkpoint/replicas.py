"""Which rank writes a shard that several ranks have."""

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor
from torch.distributed.checkpoint.planner import SavePlan, WriteItem
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor


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
