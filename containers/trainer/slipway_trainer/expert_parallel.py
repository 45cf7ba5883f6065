"""Expert parallelism: each rank of a group holds a part of the experts; tokens are exchanged with all-to-all.

Shape suffixes as in feed_forward.py; G ranks of the group, H experts of one rank.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from slipway_trainer.layout import Layout


class _Exchange(torch.autograd.Function):
    """All-to-all of rows: the first `sent[0]` rows go to rank 0 of the group, and so on. The backward pass returns the gradients,
    multiplied by `scale`."""

    @staticmethod
    def forward(ctx: Any, rows_AD: Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup, scale: float) -> Tensor:
        ctx.sent, ctx.received, ctx.group, ctx.scale = sent, received, group, scale
        return _all_to_all(rows_AD, sent, received, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        return _all_to_all(gradient * ctx.scale, ctx.received, ctx.sent, ctx.group), None, None, None, None


def _all_to_all(rows: Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup) -> Tensor:
    arrived = rows.new_empty((sum(received), *rows.shape[1:]))
    dist.all_to_all_single(arrived, rows.contiguous(), received, sent, group=group)
    return arrived


@dataclass(frozen=True)
class ExpertParallel:
    """The group of ranks that share one set of experts, and the index of this rank in it."""

    group: dist.ProcessGroup
    rank: int
    ranks: int
    #: The ranks that hold the same experts, over which FSDP shards them.
    mesh: DeviceMesh

    def holder(self, parameter_name: str, experts: int) -> int | None:
        """The first global rank that holds a parameter of an expert; None for all other parameters."""
        found = re.search(r"\.experts\.(\d+)\.", parameter_name)
        return int(found.group(1)) // (experts // self.ranks) if found else None

    def held(self, experts: int) -> range:
        """The expert indices of this rank. They are consecutive, so that rows sorted by expert are also sorted by rank."""
        share = experts // self.ranks
        return range(self.rank * share, (self.rank + 1) * share)

    def visit(self, experts: Callable[[Tensor, Tensor], Tensor], x_AD: Tensor, visits_X: Tensor) -> Tensor:
        """Sends rows sorted by expert to the ranks of the experts and returns the results in the same order. `visits_X`: rows per
        expert."""
        sent_GH = visits_X.view(self.ranks, -1)
        received_GH = torch.empty_like(sent_GH)
        dist.all_to_all_single(received_GH, sent_GH.contiguous(), group=self.group)
        sent, received = sent_GH.sum(1).tolist(), received_GH.sum(1).tolist()
        # FSDP averages over the ranks that hold the same expert, although their gradients already contain the tokens of the whole group.
        # Therefore gradients are divided by the group size inside the experts, and the division is reversed outside.
        x_RD = _Exchange.apply(x_AD, sent, received, self.group, float(self.ranks))
        # The rows arrive sorted by sender; they are sorted by expert.
        expert_R = torch.arange(received_GH.numel(), device=x_RD.device).remainder(received_GH.size(1))
        order_R = expert_R.repeat_interleave(received_GH.flatten()).argsort(stable=True)
        out_RD = experts(x_RD[order_R], received_GH.sum(0))
        return _Exchange.apply(out_RD[order_R.argsort()], received, sent, self.group, 1.0 / self.ranks)


def expert_parallel(layout: Layout, device_type: str) -> ExpertParallel | None:
    """The expert parallelism of this rank; None if it is not used. All ranks must call it. Neighboring ranks share one set of experts."""
    if layout.expert == 1:
        return None
    sizes = (layout.replicate, layout.shard * layout.context // layout.expert, layout.expert)
    mesh = init_device_mesh(device_type, sizes, mesh_dim_names=("replicate", "shard", "expert"))
    copies = mesh["shard"] if layout.replicate == 1 else mesh["replicate", "shard"]
    return ExpertParallel(mesh.get_group("expert"), mesh.get_local_rank("expert"), layout.expert, copies)
