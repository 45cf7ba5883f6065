"""Hosts that do not train: a spare host, and a host that was replaced because its hardware failed.

Its container must keep running: SageMaker ends the whole job if one container fails, and a host belongs to the job only while its
container runs. The driver of a first host that was replaced still monitors the job, and decides for all hosts.
"""

from __future__ import annotations

import threading
import time
from typing import Optional, Tuple, Union

from slipway_driver.attempt import Attempt
from slipway_driver.background import Mirror, mirror_of
from slipway_driver.coordinator import Coordinator
from slipway_driver.efa_report import EFA_SECONDS
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DONE, HANG, TRY_AGAIN, class_of
from slipway_driver.gpus import every
from slipway_driver.job_monitor import JobMonitor
from slipway_driver.log import log
from slipway_driver.member import Member
from slipway_driver.restart_policy import Decision, Report
from slipway_driver.supervisor import GRACE_SECONDS

POLL_SECONDS = 0.1

#: Result of a wait: the decision of the first host, or the outcome of this host.
Heard = Union[Tuple[Decision, str], Failure]


class IdleHost:
    """Waits for a message from the first host. Meanwhile a spare host keeps a copy of the newest checkpoint."""

    def __init__(self, peers: Member, mirror: Optional[Mirror]) -> None:
        self._peers, self._mirror = peers, mirror
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Called on SIGTERM: this host has nothing to save."""
        self._stopped.set()

    def wait(self) -> Heard:
        """The next decision, or the outcome of this host: success when the job is done, failure if the first host is lost."""
        while not self._stopped.wait(POLL_SECONDS):
            heard = self._peers.heard()
            if heard is not None:
                return heard
        return Failure(DONE, class_of(DONE), None, "", [])

    def leave(self) -> None:
        """Called when the wait is over: stops the copies."""
        if self._mirror:
            self._mirror.stop()


def idle_host(attempt: Attempt, peers: Member, set_aside: bool) -> IdleHost:
    """`set_aside`: this host has trained before and does not train again."""
    if set_aside:
        log("this host was replaced by a spare host and waits for the end of the job")
        return IdleHost(peers, None)
    log("this host is a spare: it waits to replace a host whose hardware fails")
    mirror = mirror_of(attempt)
    if mirror:
        mirror.start()
    return IdleHost(peers, mirror)


class IdleCoordinator:
    """One start of the other hosts' ranks, until they have ended."""

    def __init__(self, attempt: Attempt, peers: Coordinator, monitor: JobMonitor) -> None:
        self._peers, self._monitor, self._host = peers, monitor, attempt.cluster.current_host
        self._gpu_seconds = every(attempt.environ, len(attempt.cluster.training_hosts))
        self._stop_at: Optional[float] = None
        self._monitor.started()
        log("this host was replaced by a spare host, and its driver still coordinates the others; rank 0 is on %s" % attempt.cluster.master)

    def stop(self) -> None:
        """Called on SIGTERM: the other hosts have received it as well, and save."""
        self._stop_at = self._stop_at or time.monotonic() + GRACE_SECONDS

    def leave(self) -> None:
        """Nothing is left to stop."""

    def wait(self) -> Heard:
        """Monitors the job. Returns the next decision, which is this host's own, or the outcome of this host."""
        hang = self._until_end()
        done = self._peers.all_done()
        self._monitor.efa.publish(EFA_SECONDS if done else 0.0)
        self._monitor.ended()
        if self._stop_at is not None or (done and not hang):
            self._monitor.ended_early = next((reason for reason in self._peers.done.values() if reason), "")
            own = Report(self._host, DONE, class_of(DONE), self._monitor.ended_early, self._monitor.step)
            self._peers.finish(own)
            return Failure(DONE, own.kind, None, own.reason, [])
        code, kind = (HANG, class_of(HANG)) if hang else (TRY_AGAIN, "peer-lost")
        return self._peers.settle(Report(self._host, code, kind, hang or "the ranks of another host have ended", self._monitor.step))

    def _until_end(self) -> Optional[str]:
        """Why the ranks hang; None once they have ended, or when no more of them is to be expected after SIGTERM."""
        gpus_at = time.monotonic() + self._gpu_seconds
        while not self._peers.all_ended():
            now = time.monotonic()
            self._monitor.hear_others()
            self._monitor.efa.publish()
            if now >= gpus_at:
                gpus_at = now + self._gpu_seconds
                self._monitor.report_gpus(None)
            if self._stop_at is None:
                hang = self._monitor.hang()
                if hang or self._peers.end_requested():
                    return hang
            elif now > self._stop_at:
                log("the other hosts have not ended %d s after SIGTERM" % GRACE_SECONDS)
                return None
            time.sleep(POLL_SECONDS)
        self._monitor.hear_others()
        return None
