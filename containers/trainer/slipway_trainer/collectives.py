"""Collectives over parts that the ranks of a group hold, the ranks in a dimension before those of the part."""

import torch.distributed as dist
from torch import Tensor


def gathered_parts(part: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The parts of all ranks, stacked."""
    parts = part.new_empty((dist.get_world_size(group), *part.shape))
    dist.all_gather_into_tensor(parts.flatten(0, 1), part.contiguous(), group=group)
    return parts


def summed_part(parts: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The sum over all ranks of this one's part. `parts`: what this rank adds to that of each, stacked."""
    own = parts.new_empty(parts.shape[1:])
    dist.reduce_scatter_tensor(own, parts.contiguous().flatten(0, 1), group=group)
    return own
