"""One small collective per step for the loss and for all decisions that ranks must make together.

A decision by a single rank would let the others wait for it; a second collective between hosts would cost 15 to 120 ms per step on large
clusters, with idle GPUs. This module does not synchronize with the device: whether a step is finite is evaluated there, and the host reads
the numbers of a step after it has launched the next one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

#: Requests that a rank may make with a step, which are handled between steps, and those of its memory copies.
REQUESTS = frozenset(("leave", "hand_over", "save", "check_hosts"))
_ALL_REQUESTS = (*sorted(REQUESTS), "copy", "copying")


@dataclass(frozen=True)
class Tally:
    """The result of a step over all ranks. `loss`: mean; `norm`: gradient norm before clipping; `requests`: requests of any rank."""

    loss: float
    norm: float
    requests: frozenset[str]
    #: For each layer with experts, the largest load of an expert relative to the mean; empty = not counted.
    expert_loads: tuple[float, ...] = ()
    #: Number of tokens without padding; 0 = not counted.
    tokens: float = 0.0


class Pending:
    """The numbers of one step while they are copied to the host."""

    def __init__(self, numbers: Tensor, ranks: int, loads_YX: Tensor | None = None) -> None:
        """`loads_YX`: tokens per layer and expert from all ranks, on the device."""
        self._ranks = ranks
        self.loads_YX = loads_YX
        self._on_gpu = numbers.device.type == "cuda"
        # Pinned memory, because a copy to pageable memory would synchronize with all launched work.
        self._numbers = torch.empty(numbers.shape, dtype=torch.float32, pin_memory=self._on_gpu)
        self._numbers.copy_(numbers, non_blocking=True)
        self._arrived = torch.cuda.Event() if self._on_gpu else None
        if self._arrived is not None:
            self._arrived.record()
        #: Whether the step is already complete; otherwise the host knows only after `read`.
        self.is_over = self._arrived is None

    def read(self) -> Tally:
        """Waits for the device and returns the result."""
        if self._arrived is not None:
            self._arrived.synchronize()
        total, measured, *rest = self._numbers.tolist()
        raised, (tokens, *loads) = rest[: len(_ALL_REQUESTS)], rest[len(_ALL_REQUESTS) :]
        requests = frozenset(name for name, count in zip(_ALL_REQUESTS, raised, strict=True) if count > 0)
        return Tally(total / self._ranks, measured, requests, tuple(loads), tokens)


class Tallies:
    """One rank's side of the collective."""

    def __init__(self, device: torch.device, ranks: int) -> None:
        self._device, self._ranks = device, ranks
        #: 1.0 on the device after a loss or norm was not finite, on all ranks from the same step. Later updates have no effect: an
        #: optimizer with this value as `found_inf` does not change parameters and moments.
        self.bad = torch.zeros((), device=device)

    def ask(
        self, loss: Tensor, norm: Any, requests: Mapping[str, bool], loads_YX: Tensor | None = None, tokens: Tensor | float = 0.0
    ) -> Pending:
        """Starts the collective. All ranks must call it for the same steps; a loss that is not finite on one rank counts for all.
        `loads_YX`: this rank's tokens per layer and expert; `tokens`: its share of the tokens of the step without padding."""
        raised = self._numbers([float(requests.get(name, False)) for name in _ALL_REQUESTS])
        counted = tokens.float().view(1) if isinstance(tokens, Tensor) else raised.new_full((1,), tokens)
        own_loads = [] if loads_YX is None else [loads_YX.flatten()]
        together = torch.cat((loss.detach().float().view(1), raised, counted, *own_loads))
        dist.all_reduce(together)
        own = norm.detach().to(self._device).float().view(1) if isinstance(norm, Tensor) else self._numbers([float(norm)])
        unsound = ~(torch.isfinite(together[0]) & torch.isfinite(own[0]))
        self.bad.copy_(torch.maximum(self.bad, unsound.float()))
        common = torch.cat((together[:1], own, together[1 : 2 + len(_ALL_REQUESTS)]))
        if loads_YX is None:
            return Pending(common, self._ranks)
        all_YX = together[2 + len(_ALL_REQUESTS) :].view_as(loads_YX)
        return Pending(torch.cat((common, all_YX.amax(1) / all_YX.mean(1).clamp(min=1e-9))), self._ranks, all_YX)

    def _numbers(self, values: Sequence[float]) -> Tensor:
        """Copies numbers to the device without synchronizing."""
        numbers = torch.tensor(values, dtype=torch.float32)
        return numbers.pin_memory().to(self._device, non_blocking=True) if self._device.type == "cuda" else numbers
