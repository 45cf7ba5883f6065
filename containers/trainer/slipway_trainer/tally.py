"""What all ranks together say of a step: one small collective for the loss and for everything that ranks must decide together.

A decision by one rank alone would leave the others waiting for it; a second collective between hosts would cost 15 to 120 ms a step on
large clusters, with idle GPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

#: What a rank may ask for with a step.
WISHES = ("leave", "hand_over", "save", "check_hosts")


@dataclass(frozen=True)
class Tally:
    """One step over all ranks. `loss`: the mean; `norm`: of the gradients before clipping; `wishes`: those that any rank has."""

    loss: float
    norm: float
    wishes: frozenset[str]


def _on(device: torch.device, values: Sequence[float]) -> Tensor:
    """Numbers of the host on the device, without waiting for it."""
    numbers = torch.tensor(values, dtype=torch.float32)
    return numbers.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else numbers


def tally(loss: Tensor, norm: Any, wishes: Mapping[str, bool], ranks: int) -> Tally:
    """Asks all ranks. They call it with the same steps; a loss that is not finite on one of them is so for all."""
    device = loss.device
    together = torch.cat((loss.detach().float().view(1), _on(device, [float(wishes.get(name, False)) for name in WISHES])))
    dist.all_reduce(together)
    own = norm.detach().float().view(1) if isinstance(norm, Tensor) else _on(device, [float(norm)])
    # One copy to the host, and one wait.
    total, *raised, measured = torch.cat((together, own.to(device))).tolist()
    return Tally(total / ranks, measured, frozenset(name for name, count in zip(WISHES, raised, strict=True) if count > 0))
