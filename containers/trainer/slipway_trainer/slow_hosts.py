"""Detects a host that slows down all others. Step times do not show it, because every rank takes as long as the slowest.

At intervals, every rank times the same matrix multiplications without communication, and reports the time and its average wait for data.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from slipway_trainer import progress

#: A host that is slower than the others by this factor is reported if it is found twice in succession.
SLOW_RATIO = 1.3
MATRIX, REPEATS = {"cuda": 4096, "cpu": 192}, 6


@dataclass(frozen=True)
class Slow:
    """`host`: index among the training hosts. `ratio`: its time relative to the others."""

    host: int
    what: str
    ratio: float


def probe_seconds(device: torch.device) -> float:
    """The shortest of several equal matrix multiplications, seconds; 0 if there is not enough memory."""
    side = MATRIX[device.type]
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    try:
        left = torch.ones((side, side), dtype=kind, device=device)
        best = float("inf")
        for _ in range(REPEATS):
            began = time.perf_counter()
            torch.mm(left, left)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            best = min(best, time.perf_counter() - began)
    except torch.OutOfMemoryError:
        return 0.0
    return best


def slow_host(probes: Sequence[float], data_waits: Sequence[float], ranks_per_host: int, step_seconds: float) -> Slow | None:
    """The slowest host, if it slows down the others. Arguments by rank: seconds of the probe, and seconds per step of waiting for data."""
    computes, waits = _by_host(probes, ranks_per_host), _by_host(data_waits, ranks_per_host)
    if len(computes) < 2:
        return None
    usual, usual_wait = statistics.median_low(computes), statistics.median_low(waits)
    found = []
    if usual > 0:
        found.append(Slow(computes.index(max(computes)), "compute", max(computes) / usual))
    # The step time without the additional wait of the slowest host.
    others = step_seconds - (max(waits) - usual_wait)
    if others > 0:
        found.append(Slow(waits.index(max(waits)), "data", step_seconds / others))
    worst = max(found, key=lambda slow: slow.ratio, default=None)
    return worst if worst is not None and worst.ratio >= SLOW_RATIO else None


def _by_host(values: Sequence[float], ranks_per_host: int) -> list[float]:
    return [max(values[first : first + ranks_per_host]) for first in range(0, len(values), ranks_per_host)]


class SlowHosts:
    """One rank's part of the comparison. All ranks call `check` at the same steps; rank 0 prints the result."""

    def __init__(self, device: torch.device, group: dist.ProcessGroup, hosts: int, every_seconds: float) -> None:
        self._device, self._group, self._hosts, self._every = device, group, hosts, every_seconds
        self._checked_at = time.monotonic()
        self._waited, self._steps = 0.0, 0
        self._suspect: Slow | None = None
        self._reported: Slow | None = None

    def waited(self, data_seconds: float) -> None:
        """Records how long a step has waited for its data."""
        self._waited += data_seconds
        self._steps += 1

    @property
    def due(self) -> bool:
        """Whether it is time for the next comparison; never with an interval of 0."""
        return self._every > 0 and time.monotonic() - self._checked_at >= self._every

    def compare(self, step_seconds: float) -> None:
        """Measures, and prints a change of the result on rank 0."""
        news, slow = self.check(step_seconds)
        if news and dist.get_rank() == 0:
            progress.emit(
                "slow-host", host=slow.host if slow else None, **({"what": slow.what, "ratio": round(slow.ratio, 2)} if slow else {})
            )

    def check(self, step_seconds: float) -> tuple[bool, Slow | None]:
        """Measures on every rank. Returns whether the result has changed, and the slow host (None if there is no slow host any longer)."""
        self._checked_at = time.monotonic()
        own = torch.tensor([probe_seconds(self._device), self._waited / max(1, self._steps)], dtype=torch.float64)
        self._waited, self._steps = 0.0, 0
        rows = [torch.zeros_like(own) for _ in range(dist.get_world_size(self._group))]
        dist.all_gather(rows, own, group=self._group)
        probes, waits = [float(row[0]) for row in rows], [float(row[1]) for row in rows]
        return self._judge(slow_host(probes, waits, max(1, len(rows) // self._hosts), step_seconds))

    def _judge(self, found: Slow | None) -> tuple[bool, Slow | None]:
        again = found is not None and self._suspect is not None and (found.host, found.what) == (self._suspect.host, self._suspect.what)
        self._suspect = found
        if again and (self._reported is None or self._reported.host != found.host):
            self._reported = found
            return True, found
        if found is None and self._reported is not None:
            self._reported = None
            return True, None
        return False, None
