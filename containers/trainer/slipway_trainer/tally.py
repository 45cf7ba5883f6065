"""What all ranks together say of a step: one small collective for the loss and for everything that ranks must decide together.

A decision by one rank alone would leave the others waiting for it; a second collective between hosts would cost 15 to 120 ms a step on
large clusters, with idle GPUs. Nothing here waits for the device: whether a step is sound is decided there, and the host reads the
numbers of a step after it has launched the next one.
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
    #: For each layer with experts, tokens of the expert that got most over the mean; empty = not counted.
    expert_loads: tuple[float, ...] = ()


class Asked:
    """The numbers of one step on their way to the host."""

    def __init__(self, numbers: Tensor, ranks: int, loads_YX: Tensor | None = None) -> None:
        """`loads_YX`: tokens that each expert of each layer got from all ranks, still on the device."""
        self._ranks = ranks
        self.loads_YX = loads_YX
        self._on_gpu = numbers.device.type == "cuda"
        # Pinned: a copy into ordinary memory would make the host wait for everything that was launched before.
        self._numbers = torch.empty(numbers.shape, dtype=torch.float32, pin_memory=self._on_gpu)
        self._numbers.copy_(numbers, non_blocking=True)
        self._arrived = torch.cuda.Event() if self._on_gpu else None
        if self._arrived is not None:
            self._arrived.record()
        #: Whether the step is over already; where it is not, the host learns its end only by reading.
        self.is_over = self._arrived is None

    def read(self) -> Tally:
        """Waits until the device has come this far."""
        if self._arrived is not None:
            self._arrived.synchronize()
        total, measured, *rest = self._numbers.tolist()
        raised, loads = rest[: len(WISHES)], rest[len(WISHES) :]
        wishes = frozenset(name for name, count in zip(WISHES, raised, strict=True) if count > 0)
        return Tally(total / self._ranks, measured, wishes, tuple(loads))


class Tallies:
    """One rank's part in the tallies of its run."""

    def __init__(self, device: torch.device, ranks: int) -> None:
        self._device, self._ranks = device, ranks
        #: 1.0 on the device since a loss or norm was not finite, on every rank from the same step on. No update follows: an optimizer that
        #: is given this as `found_inf` leaves parameters and moments as they are.
        self.bad = torch.zeros((), device=device)

    def ask(self, loss: Tensor, norm: Any, wishes: Mapping[str, bool], loads_YX: Tensor | None = None) -> Asked:
        """Asks all ranks. They call it with the same steps; a loss that is not finite on one of them is so for all. `loads_YX`: tokens of
        this rank that each expert of each layer got."""
        raised = self._numbers([float(wishes.get(name, False)) for name in WISHES])
        own_loads = [] if loads_YX is None else [loads_YX.flatten()]
        together = torch.cat((loss.detach().float().view(1), raised, *own_loads))
        dist.all_reduce(together)
        own = norm.detach().to(self._device).float().view(1) if isinstance(norm, Tensor) else self._numbers([float(norm)])
        unsound = ~(torch.isfinite(together[0]) & torch.isfinite(own[0]))
        self.bad.copy_(torch.maximum(self.bad, unsound.float()))
        common = torch.cat((together[:1], own, together[1 : 1 + len(WISHES)]))
        if loads_YX is None:
            return Asked(common, self._ranks)
        all_YX = together[1 + len(WISHES) :].view_as(loads_YX)
        return Asked(torch.cat((common, all_YX.amax(1) / all_YX.mean(1).clamp(min=1e-9))), self._ranks, all_YX)

    def _numbers(self, values: Sequence[float]) -> Tensor:
        """Numbers of the host on the device, without waiting for it."""
        numbers = torch.tensor(values, dtype=torch.float32)
        return numbers.pin_memory().to(self._device, non_blocking=True) if self._device.type == "cuda" else numbers
