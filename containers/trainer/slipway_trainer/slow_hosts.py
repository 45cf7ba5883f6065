"""Detects a host or a network that slows down all hosts. Step times do not show it, because every rank takes as long as the slowest.

At intervals, between two steps, every rank times the same matrix multiplications without communication, exchanges data with the rank of
the same local number on each of the two next hosts, takes part in an all-reduce, and reports these times and its average wait for data.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist

from slipway_trainer import progress

#: A host that is slower than the others by this factor is reported if it is found twice in succession, and so is a slower network.
SLOW_RATIO, SLOW_NETWORK_RATIO = 1.3, 1.5
MATRIX, REPEATS = {"cuda": 4096, "cpu": 192}, 6
#: Bytes of an exchange and of the all-reduce, and by how many seconds a slow one must be slower.
MESSAGE, LEAST_SECONDS = {"cuda": 2**24, "cpu": 2**16}, {"cuda": 2e-4, "cpu": 5e-3}
#: GPU memory that must be free before the first exchange, for the connections of NCCL.
CONNECTIONS_BYTES = 2**30
#: Largest part of the time since the start of the ranks that comparisons may take.
SHARE = 0.001
#: Number of comparisons after which an all-reduce is compared with the fastest of them.
MIN_HISTORY = 3


@dataclass(frozen=True)
class Slow:
    """`hosts`: indexes among the training hosts: one, two of which either may be slow, or none if it is the network of all. `ratio`: its
    time relative to the others, and that of an all-reduce relative to the fastest before it."""

    hosts: tuple[int, ...]
    what: str
    ratio: float


@dataclass(frozen=True)
class Times:
    """What the ranks have measured, by rank, in seconds. `exchanges`: by round; empty if there was none."""

    probes: Sequence[float]
    data_waits: Sequence[float]
    exchanges: Sequence[Sequence[float]] = ()


def probe_seconds(device: torch.device) -> float:
    """The shortest of several equal matrix multiplications, seconds; 0 if there is not enough memory."""
    side = MATRIX[device.type]
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    try:
        left = torch.ones((side, side), dtype=kind, device=device)
        return _shortest(device, lambda: torch.mm(left, left))
    except torch.OutOfMemoryError:
        return 0.0


def _shortest(device: torch.device, act: Callable[[], object]) -> float:
    """The shortest of several repetitions until the device has finished, seconds."""
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        act()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - began)
    return best


def slow_host(times: Times, ranks_per_host: int, step_seconds: float) -> Slow | None:
    """The slowest host by its own work, if it slows down the others."""
    computes, waits = _by_host(times.probes, ranks_per_host), _by_host(times.data_waits, ranks_per_host)
    if len(computes) < 2:
        return None
    usual, usual_wait = statistics.median_low(computes), statistics.median_low(waits)
    found = []
    if usual > 0:
        rank = list(times.probes).index(max(computes))
        where = f"compute on GPU {rank % ranks_per_host}" if ranks_per_host > 1 else "compute"
        found.append(Slow((rank // ranks_per_host,), where, max(computes) / usual))
    # The step time without the additional wait of the slowest host.
    others = step_seconds - (max(waits) - usual_wait)
    if others > 0:
        found.append(Slow((waits.index(max(waits)),), "data", step_seconds / others))
    worst = max(found, key=lambda slow: slow.ratio, default=None)
    return worst if worst is not None and worst.ratio >= SLOW_RATIO else None


def slow_link(times: Times, ranks_per_host: int, least_seconds: float) -> Slow | None:
    """The host that is common to all slow exchanges, or both hosts if a single exchange is slow, or the first of several hosts that make
    both of their exchanges slow. With two hosts there is nothing to compare with; and where an exchange is slow for no such reason, no host
    is named."""
    seconds: dict[tuple[int, int], float] = {}
    for pairs, of_ranks in zip(rounds(len(times.probes) // ranks_per_host), times.exchanges, strict=False):
        of_hosts = _by_host(of_ranks, ranks_per_host)
        seconds |= {(left, right): max(of_hosts[left], of_hosts[right]) for left, right in pairs}
    if len(seconds) < 3:
        return None
    # A slow host makes two of the exchanges slow, which is most of them on three hosts.
    usual = sorted(seconds.values())[(len(seconds) - 1) // 4]
    slow = {pair: took for pair, took in seconds.items() if took >= SLOW_NETWORK_RATIO * usual and took - usual >= least_seconds}
    common = set.intersection(*map(set, slow)) if slow else set()
    named = sorted(common) or _several(set(slow), set(seconds) - set(slow))
    return Slow(tuple(named), "network", max(slow.values()) / usual) if named else None


def _several(slow: set[tuple[int, int]], others: set[tuple[int, int]]) -> list[int]:
    """The first host that makes all of its exchanges slow, if such hosts explain all slow exchanges. A host between two of them need not be
    slow itself."""
    suspects = {host for pair in slow for host in pair} - {host for pair in others for host in pair}
    beside = {host for pair in slow for host in pair if len(suspects & set(pair)) == 1}
    explained = suspects and all(suspects & set(pair) for pair in slow)
    return [min(suspects & beside)] if explained and suspects & beside else []


def rounds(hosts: int) -> list[list[tuple[int, int]]]:
    """The pairs of hosts that exchange data at the same time: each host with the next one, in two rounds, or three for an odd number."""
    pairs = [(host, (host + 1) % hosts) for host in range(hosts if hosts > 2 else hosts - 1)]
    last = [pairs.pop()] if hosts % 2 == 1 and hosts > 1 else []
    return [some for some in (pairs[::2], pairs[1::2], last) if some]


def _by_host(values: Sequence[float], ranks_per_host: int) -> list[float]:
    return [max(values[first : first + ranks_per_host]) for first in range(0, len(values), ranks_per_host)]


def _exchange(own: torch.Tensor, other: torch.Tensor, partner: int) -> None:
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, partner), dist.P2POp(dist.irecv, other, partner)]):
        work.wait()


class SlowHosts:
    """One rank's part of the comparison. All ranks call `compare` at the same steps; rank 0 prints the result."""

    def __init__(self, device: torch.device, group: dist.ProcessGroup, hosts: int, every_seconds: float) -> None:
        self._device, self._group, self._hosts, self._every = device, group, hosts, every_seconds
        self._began_at = self._checked_at = time.monotonic()
        self._spent, self._last, self._measured_network = 0.0, 0.0, False
        self._is_connected = False
        #: The fastest all-reduce of this start, and how many there were.
        self._fastest, self._reduced = float("inf"), 0
        self._waited, self._steps = 0.0, 0
        self._suspect: Slow | None = None
        self._reported: Slow | None = None

    def waited(self, data_seconds: float) -> None:
        """Records how long a step has waited for its data."""
        self._waited += data_seconds
        self._steps += 1

    @property
    def due(self) -> bool:
        """Whether it is time for the next comparison; never with an interval of 0. After another one as long as the last, all of them must
        have taken at most `SHARE` of the time."""
        now = time.monotonic()
        return self._every > 0 and now - self._checked_at >= self._every and self._spent + self._last <= SHARE * (now - self._began_at)

    def compare(self, step_seconds: float) -> None:
        """Measures, and prints the time that it took and a change of the result on rank 0."""
        began = time.monotonic()
        news, slow = self.check(step_seconds)
        self._checked_at = time.monotonic()
        self._last = self._checked_at - began
        self._spent += self._last
        if dist.get_rank() != 0:
            return
        percent = 100 * self._spent / max(self._checked_at - self._began_at, 1e-9)
        progress.emit("host-check", seconds=round(self._last, 4), percent=round(percent, 3), network=self._measured_network)
        if news:
            progress.emit("slow-host", **(_fields(slow) if slow else {"host": None}))

    def check(self, step_seconds: float) -> tuple[bool, Slow | None]:
        """Measures on every rank. Returns whether the result has changed, and what is slow (None if nothing is slow any longer)."""
        # A single host, and hosts with different numbers of ranks, have nothing to exchange.
        even = self._hosts > 1 and dist.get_world_size() % self._hosts == 0
        buffers = self._buffers() if even else None
        own = [probe_seconds(self._device), self._waited / max(1, self._steps), float(buffers is not None)]
        self._waited, self._steps = 0.0, 0
        probes, waits, fits = self._gathered(own)
        reduced, exchanges = 0.0, []
        self._measured_network = buffers is not None and all(fits)
        if buffers is not None and self._measured_network:
            of_ranks, *exchanges = self._gathered(self._measured(*buffers))
            reduced = max(of_ranks)
        times, per_host = Times(probes, waits, exchanges), max(1, len(probes) // self._hosts)
        local = slow_host(times, per_host, step_seconds)
        # A host whose own work is slow is late in exchanges, too, and a slow link is part of an all-reduce.
        return self._judge(local or slow_link(times, per_host, LEAST_SECONDS[self._device.type]) or self._slow_network(reduced))

    def _buffers(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Memory for the messages; None if it does not fit, or if the library of the ranks cannot exchange data between two of them."""
        if dist.get_backend() not in ("nccl", "gloo"):
            return None
        on_gpu = self._device.type == "cuda"
        if on_gpu and not self._is_connected and torch.cuda.mem_get_info(self._device)[0] < CONNECTIONS_BYTES:
            return None
        try:
            own = torch.ones(MESSAGE[self._device.type] // 4, device=self._device)
            return own, torch.empty_like(own)
        except torch.OutOfMemoryError:
            return None

    def _measured(self, own: torch.Tensor, other: torch.Tensor) -> list[float]:
        """The seconds of an all-reduce, and of the exchange of each round (0 without a partner), over the connections with which the ranks
        train. All ranks must call it."""
        self._is_connected = True
        rank, per_host = dist.get_rank(), dist.get_world_size() // self._hosts
        found = [_shortest(self._device, lambda: dist.all_reduce(other.zero_()))]
        for pairs in rounds(self._hosts):
            partner = next((sum(pair) - rank // per_host for pair in pairs if rank // per_host in pair), None)
            to = None if partner is None else partner * per_host + rank % per_host
            found.append(0.0 if to is None else _shortest(self._device, partial(_exchange, own, other, to)))
        return found

    def _gathered(self, own: Sequence[float]) -> list[list[float]]:
        """For each of the numbers, the values of all ranks."""
        values = torch.tensor(own, dtype=torch.float64)
        rows = [torch.zeros_like(values) for _ in range(dist.get_world_size(self._group))]
        dist.all_gather(rows, values, group=self._group)
        return torch.stack(rows).T.tolist()

    def _slow_network(self, reduced: float) -> Slow | None:
        if reduced == 0:
            return None
        fastest, enough = self._fastest, self._reduced >= MIN_HISTORY
        self._fastest, self._reduced = min(fastest, reduced), self._reduced + 1
        is_slow = reduced >= SLOW_NETWORK_RATIO * fastest and reduced - fastest >= LEAST_SECONDS[self._device.type]
        return Slow((), "all-reduce", reduced / fastest) if enough and is_slow else None

    def _judge(self, found: Slow | None) -> tuple[bool, Slow | None]:
        again = found is not None and self._suspect is not None and (found.hosts, found.what) == (self._suspect.hosts, self._suspect.what)
        self._suspect = found
        if again and (self._reported is None or self._reported.hosts != found.hosts):
            self._reported = found
            return True, found
        if found is None and self._reported is not None:
            self._reported = None
            return True, None
        return False, None


def _fields(slow: Slow) -> dict[str, object]:
    named = {"host": slow.hosts[0]} if len(slow.hosts) == 1 else {"hosts": list(slow.hosts)}
    return {**named, "what": slow.what, "ratio": round(slow.ratio, 2)}
