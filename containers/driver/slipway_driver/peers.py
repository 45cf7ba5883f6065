"""Communication between the drivers of a job: they agree on the outcome of each start and exchange EFA, GPU and progress reports."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from slipway_driver.attempt import Attempt
from slipway_driver.coordinator import Coordinator
from slipway_driver.driver_start import Decisions, DriverStart
from slipway_driver.gpu_evidence import Gpu, is_evidence
from slipway_driver.log import log
from slipway_driver.member import RELEASED, Member
from slipway_driver.newest_checkpoint import newest_checkpoint
from slipway_driver.peer_channel import REPORT_SECONDS
from slipway_driver.restart_budget import RestartBudget
from slipway_driver.restart_policy import Decision, Report, Start, decide


class Alone:
    """A job with one host, or without a shared secret: there are no peers."""

    def __init__(self, restarts: int, resume_from: Callable[[], str], kept: Decisions) -> None:
        self._budget, self._resume_from, self._kept = RestartBudget(restarts), resume_from, kept
        self._starts = [Start(*start) for start in kept.facts.get("starts", [])]
        self._budget.taken = kept.facts.get("taken", [])
        #: There is no other host.
        self.another_ended = False
        self.gpus: Dict[str, List[Gpu]] = {}
        self.cleared: Dict[str, List[str]] = {}
        #: Reports of this host that it was found broken.
        self.broken: List[Report] = []

    @property
    def spares_left(self) -> None:
        """Always None: there are no spare hosts."""

    def end_requested(self) -> Optional[str]:
        """Always None: there is no peer that could request an end."""
        return None

    def heard(self) -> str:
        """Not used: a single host never waits as a spare."""
        return RELEASED

    def announce(self, kind: str) -> None:
        """Does nothing: there are no peers."""

    def share_efa(self, report: Mapping[str, Any]) -> bool:
        """Does nothing: no peer collects reports."""
        return True

    def efa_reports(self, wait_seconds: float = 0.0) -> Dict[str, Dict[str, Any]]:
        """Always empty: there are no other hosts."""
        return {}

    def share_gpus(self, use: Mapping[str, Any]) -> None:
        """Does nothing: no peer collects reports."""

    def share_cleared(self, host: str, gpus: Sequence[str]) -> None:
        """Keeps the GPUs of this host that have passed the full health check."""
        self.cleared[host] = list(gpus)

    def gpu_reports(self) -> Dict[str, Dict[str, Any]]:
        """Always empty: there are no other hosts."""
        return {}

    def share_progress(self, line: Mapping[str, Any]) -> bool:
        """Does nothing: no peer collects reports."""
        return True

    def progress(self) -> List[Dict[str, Any]]:
        """Always empty: there are no other hosts."""
        return []

    def stop(self) -> None:
        """Does nothing: there is nothing to wait for."""

    def finish(self, own: Report) -> None:
        """Does nothing: no peer waits."""

    def settle(self, own: Report) -> "tuple[Decision, str]":
        """Decides on a restart from this host's report alone. Returns the decision and the checkpoint to resume from ('' for none)."""
        self.broken += [own] if is_evidence(own) else []
        decision = decide([own], [], self._budget.left(), self._starts, [own.host])
        if decision.restart:
            self._budget.take()
            self._starts.append(Start(own.step, own.host))
            self._kept.keep(starts=self._starts, taken=self._budget.taken)
        return decision, self._resume_from() if decision.restart else ""

    def close(self) -> None:
        """Does nothing: there are no connections."""


Peers = Union[Alone, Coordinator, Member]


def patience(environ: Mapping[str, str]) -> float:
    """Seconds within which another host must respond: SLIPWAY_PEER_SECONDS, otherwise REPORT_SECONDS."""
    return float(environ.get("SLIPWAY_PEER_SECONDS") or REPORT_SECONDS)


def _gpus(attempt: Attempt) -> List[Gpu]:
    """The GPUs of this host; none with Ray, where a host reports a process of Ray that ends, and the loss of another host, as hardware."""
    return [] if attempt.job.launcher == "ray" else [Gpu(*gpu) for gpu in attempt.hardware.get("gpuIds", [])]


def peers_of(attempt: Attempt, start: DriverStart, kept: Decisions) -> Peers:
    """The peers of this host, which know its GPUs."""
    peers = _peers_of(attempt, start, kept)
    peers.gpus[attempt.cluster.current_host] = _gpus(attempt)
    return peers


def _peers_of(attempt: Attempt, start: DriverStart, kept: Decisions) -> Peers:
    """The peers of this host. They are used even if restarts in place are disabled: a failure on one host then ends the ranks on all hosts
    at once instead of after the timeout of a collective."""
    job, cluster = attempt.job, attempt.cluster

    def newest() -> str:
        uri, started_from = attempt.environ["SLIPWAY_CHECKPOINT_URI"], attempt.environ["SLIPWAY_RESUME_FROM"]
        # With several hosts, a checkpoint in a folder of this one may not be on the others.
        shared = job.checkpoint_mode != "managed" or len(cluster.training_hosts) == 1
        marker = job.committed_marker if shared else None
        return newest_checkpoint(uri) or (newest_checkpoint(uri, marker=marker) if marker else "") or started_from

    talks = cluster.takes_part or cluster.idle
    if not talks or len(cluster.training_hosts) + len(cluster.idle_hosts) == 1 or not job.restart_secret:
        return Alone(job.restarts_in_place if cluster.takes_part and len(cluster.training_hosts) == 1 else 0, newest, kept)
    port = int(attempt.environ["MASTER_PORT"]) + 1
    own, seconds = attempt.environ["SLIPWAY_BIND_ADDRESS"], patience(attempt.environ)
    if cluster.is_first:
        hosts, spares = cluster.training_hosts, cluster.idle_hosts
        return Coordinator(hosts, own, port, job.restart_secret, job.restarts_in_place, log, newest, seconds, spares, kept)
    return Member(
        cluster.current_host,
        attempt.environ["MASTER_ADDR"],
        port,
        own,
        job.restart_secret,
        log,
        seconds,
        start.number > 0,
        attempt.hardware.get("gpuIds", []),
    )
