"""What one start of the ranks shows: steps, hangs, speed, EFA and GPU use. On the first host, that of the whole job."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Mapping, Optional, Sequence

from slipway_driver.attempt import Attempt
from slipway_driver.coordinator import Coordinator
from slipway_driver.efa_report import EfaReport
from slipway_driver.gpu_use import MeanUse
from slipway_driver.log import emit
from slipway_driver.member import Peers
from slipway_driver.progress import FoundSteps, ProgressReader, progress_line
from slipway_driver.rank_output import LineBudget
from slipway_driver.shared_progress import ProgressSource, SharedProgress
from slipway_driver.step_times import StepTimes
from slipway_driver.vitals import Vitals
from slipway_driver.watchdog import watchdog_of


class JobMonitor:
    """One start of the ranks, as one host sees it. Only the first host, also if it was replaced, hears all hosts and detects hangs."""

    def __init__(self, attempt: Attempt, peers: Peers, step_times: StepTimes, mean_use: MeanUse) -> None:
        cluster = attempt.cluster
        self._attempt, self._peers, self._step_times, self._mean_use = attempt, peers, step_times, mean_use
        self._is_first, self._host = cluster.is_first, cluster.current_host
        #: The host of rank 0. A host that hears no others goes by its own lines.
        self._of_rank_0 = cluster.master if cluster.is_first else self._host
        job = attempt.job
        # Built-in programs print their own progress lines.
        self.reader = ProgressReader(job.step_regex, job.loss_regex, "none" if job.builtin_module else job.progress_format)
        self._found_steps = FoundSteps(expects_loss=job.loss_regex is not None or job.step_regex is None)
        self._step_lines, self._unprinted = LineBudget(per_second=1.0), ""
        self.watchdog = watchdog_of(attempt, time.monotonic())
        self._shared, self._source = SharedProgress(peers), ProgressSource(self._of_rank_0)
        self._vitals = Vitals(cluster.training_hosts, int(attempt.environ.get("SLIPWAY_RESTART", 0)))
        self.efa = EfaReport(attempt, peers)
        #: Why this start ended with exit code 0 before it had done its work; "" if it did not.
        self.ended_early = ""
        self._alerted = False
        self._lock = threading.Lock()

    @property
    def step(self) -> Optional[int]:
        """The last step that was printed on this host, or on the first host in the job; None before the first step."""
        return self.watchdog.step

    @property
    def sees_all(self) -> bool:
        """Whether this host has seen every step of the job."""
        cluster = self._attempt.cluster
        return cluster.has_rank_0 and (self._source.is_own or len(cluster.training_hosts) == 1)

    def facts(self) -> Dict[str, Any]:
        """Fields of the heartbeat."""
        return {
            "attempt": self._attempt.job.attempt,
            "step": self.step,
            "phase": self.watchdog.phase,
            "hosts": len(self._attempt.cluster.hosts),
            **self._vitals.facts(),
            **({"endedEarly": self.ended_early} if self.ended_early else {}),
        }

    def started(self) -> None:
        """Called when the ranks are being started."""
        self._step_times.started(time.time(), self._attempt.environ["SLIPWAY_RESUME_FROM"])

    def ended(self) -> None:
        """Called when the ranks have ended, or will not be started."""
        self._emit_steps(self._found_steps.end(), is_end=True)
        self._step_times.end(time.time())

    def add(self, line: str, event: Mapping[str, Any]) -> None:
        """Processes a progress line of this host."""
        self._progressed(line, event, self._host)
        if not self._is_first and event["event"] != "bar":
            self._shared.add(line, event, time.monotonic(), of_rank_0=self._attempt.cluster.has_rank_0)
        if event["event"] == "step":
            self.efa.publish()

    def hear_others(self) -> None:
        """Processes progress of the other hosts; on another host than the first, sends lines that could not be sent before."""
        if self._is_first:
            for reported in self._shared.heard():
                self._progressed(*reported)
        else:
            self._shared.send()

    def _progressed(self, line: str, event: Mapping[str, Any], host: str) -> None:
        now = time.monotonic()
        if self._source.counts(event, host):
            with self._lock:
                self._vitals.feed(event, now)
                self.watchdog.feed(event, now)
            restarted = self._step_times.feed(event, time.time())
            if restarted and self._is_first:
                emit(progress_line("restart", state="end", **restarted))
        if self._is_first:
            self._emit_steps(self._found_steps.feed(line, event, "" if host == self._of_rank_0 else host, now))

    def _emit_steps(self, lines: Sequence[str], is_end: bool = False) -> None:
        """Prints the steps that expressions have found: after a burst one a second, and the last one."""
        for line in lines:
            self._unprinted = "" if self._step_lines.admit(line, time.monotonic()) else line
            if not self._unprinted:
                emit(line)
        if is_end and self._unprinted:
            emit(self._unprinted)

    def report_gpus(self, use: Optional[Mapping[str, Any]]) -> None:
        """Other hosts send their GPU utilization to the first host, which logs it. `use`: that of this host, None if it does not train."""
        if use:
            self._peers.share("gpus", use)
        if self._is_first and isinstance(self._peers, Coordinator) and (hosts := dict(self._peers.taken("gpus"))):
            self._mean_use.add(hosts)
            emit(progress_line("gpus", hosts=hosts))

    def hang(self) -> Optional[str]:
        """The reason why the ranks must end for a hang; None if they need not. An alert alone is printed once."""
        if not self._is_first:
            return None
        with self._lock:
            hang, stops = self.watchdog.verdict(time.monotonic()), self.watchdog.may_stop
        if hang and (stops or not self._alerted):
            self._alerted = True
            emit(progress_line("hang", reason=hang, step=self.step, **({} if stops else {"alertOnly": True})))
        return hang if stops else None
