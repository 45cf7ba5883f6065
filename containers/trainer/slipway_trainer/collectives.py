"""Collectives on shards; stacked results have a leading dimension for the ranks of the group."""

import torch.distributed as dist
from torch import Tensor


def gathered_parts(part: Tensor, group: dist.ProcessGroup) -> Tensor:
    """All-gather: the shards of all ranks, stacked."""
    parts = part.new_empty((dist.get_world_size(group), *part.shape))
    dist.all_gather_into_tensor(parts.flatten(0, 1), part.contiguous(), group=group)
    return parts


def summed_part(parts: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Reduce-scatter: the sum over all ranks of this rank's shard. `parts`: this rank's summands of all shards, stacked."""
    own = parts.new_empty(parts.shape[1:])
    dist.reduce_scatter_tensor(own, parts.contiguous().flatten(0, 1), group=group)
    return own
