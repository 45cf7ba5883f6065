"""Which rank writes a shard that several ranks have."""

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.planner import SavePlan, WriteItem
from torch.distributed.tensor import DTensor


def own_part(plan: SavePlan, state: Mapping[str, Tensor]) -> SavePlan:
    """The items of a rank's plan that it writes. Replicas divide their items by size, so that DCP's coordinator gets each of them once
    instead of from every replica. `state`: the tensors of the plan. Other tensors than shards and step counts are left to DCP."""
    groups: dict[tuple[int, int], list[WriteItem]] = defaultdict(list)
    for item in plan.items:
        groups[_replica(item.index.fqn, state[item.index.fqn])].append(item)
    kept = {id(item) for (index, count), items in groups.items() for item in _share(items, index, count)}
    return replace(plan, items=[item for item in plan.items if id(item) in kept])


def _replica(name: str, tensor: Tensor) -> tuple[int, int]:
    """(index of this rank among those with equal shards of a tensor, their number)."""
    if name.startswith("optimizer.") and name.endswith(".step"):
        # All ranks have a part of each parameter, and so its count.
        return dist.get_rank(), dist.get_world_size()
    index, count = 0, 1
    if isinstance(tensor, DTensor):
        mesh, place = tensor.device_mesh, tensor.device_mesh.get_coordinate()
        for dimension, placement in enumerate(tensor.placements):
            if placement.is_replicate() and place is not None:
                index, count = index * mesh.size(dimension) + place[dimension], count * mesh.size(dimension)
    return index, count


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
