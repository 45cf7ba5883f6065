"""What one start of the ranks shows: steps, hangs, speed, EFA and GPU use. On the first host, that of the whole job, for which the other
hosts forward their progress lines: the script decides which rank prints them.

Megatron-LM prints its steps on the last rank (print_rank_last of megatron/training/utils.py, 2026-11-23), which runs on the last host.
"""

from __future__ import annotations

import collections
import math
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from slipway_driver.attempt import Attempt
from slipway_driver.coordinator import Coordinator
from slipway_driver.efa_report import EfaReport
from slipway_driver.gpus import MeanUse
from slipway_driver.log import emit
from slipway_driver.member import Peers
from slipway_driver.progress import FoundSteps, ProgressReader, progress_line
from slipway_driver.rank_output import LineBudget
from slipway_driver.step_times import StepTimes
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


#: Window over which speed is measured, without declared phases, and the number of previous windows for comparison (one hour).
WINDOW_SECONDS = 300.0
WINDOWS = 12
#: The minimum number of windows for an estimate of the usual speed.
MIN_WINDOWS = 4


class Vitals:
    """Computes the status from the progress events of the first host. `hosts`: names of the training hosts in rank order."""

    def __init__(self, hosts: Sequence[str], restarts: int) -> None:
        self._hosts, self._restarts = list(hosts), restarts
        self._first: Optional[int] = None
        self._loss: Optional[float] = None
        self._alert: Optional[str] = None
        self._slow: Optional[Dict[str, Any]] = None
        self._rates: Deque[float] = deque(maxlen=WINDOWS + 1)
        self._window: Optional[Tuple[int, float]] = None
        self._phase_since: Optional[float] = None
        self._quiet_seconds = 0.0

    def feed(self, event: Mapping[str, Any], now: float) -> None:
        """Processes one progress event, read at `now` (seconds of the monotonic clock)."""
        kind, loss = event.get("event"), event.get("loss")
        if kind in ("step", "metric") and loss is not None and math.isfinite(loss):
            self._loss = float(loss)
        if kind == "step":
            self._step(event["step"], now)
        elif kind == "phase" and event.get("state", "begin") != "end":
            self._phase_since = now
        elif kind == "phase" and self._phase_since is not None:
            self._quiet_seconds, self._phase_since = self._quiet_seconds + now - self._phase_since, None
        elif kind == "loss":
            self._alert = str(event.get("reason", ""))[:300]
        elif kind == "slow-host":
            self._slow_host(event)

    def _step(self, step: int, now: float) -> None:
        self._first = step if self._first is None else self._first
        first, since = self._window or (step, now)
        elapsed = now - since - self._quiet_seconds
        if elapsed >= WINDOW_SECONDS:
            self._rates.append(3600.0 * (step - first) / elapsed)
        if elapsed >= WINDOW_SECONDS or self._window is None:
            self._window, self._quiet_seconds = (step, now), 0.0

    def _slow_host(self, event: Mapping[str, Any]) -> None:
        index, between = event.get("host"), event.get("hosts")
        what, ratio = str(event.get("what", ""))[:300], event.get("ratio")
        if self._is_host(index):
            self._slow = {"host": self._hosts[index], "what": what, "ratio": ratio}
        elif isinstance(between, list):
            names = " and ".join(self._hosts[host] for host in between[:2] if self._is_host(host))
            # No host is to blame.
            self._slow = {"host": "", "what": what + (" between " + names if names else ""), "ratio": ratio}
        else:
            self._slow = None

    def _is_host(self, index: Any) -> bool:
        return isinstance(index, int) and 0 <= index < len(self._hosts)

    def facts(self) -> Dict[str, Any]:
        """Fields of the heartbeat; None for unknown values."""
        import statistics

        known = len(self._rates) >= MIN_WINDOWS
        rates = list(self._rates)
        return {
            "firstStep": self._first,
            "loss": self._loss,
            "lossAlert": self._alert,
            "slowHost": self._slow,
            "stepsPerHour": round(rates[-1], 2) if known else None,
            "usualStepsPerHour": round(statistics.median(rates[:-1]), 2) if known else None,
            "restarts": self._restarts,
        }


#: Limit on forwarded steps, in case every rank of a script prints every step, and on other forwarded lines.
MAX_PER_SECOND = 20
#: What the first host uses of an event. A whole event may be longer than a message between drivers.
FIELDS = ("event", "step", "loss", "name", "state", "end", "budgetSeconds", "source", "reason", "host", "hosts", "what", "ratio")
MAX_CHARACTERS = 300
#: Length of the part of a line that contains the rank label.
LABEL_CHARACTERS = 40


class ProgressSource:
    """Selects the host whose progress counts on the first host: that of rank 0, or, while it prints no steps, the first other host that
    does. Lines of other hosts arrive late, so mixing them would let the step decrease."""

    def __init__(self, of_rank_0: str) -> None:
        self._of_rank_0 = of_rank_0
        self._host: Optional[str] = None
        self._lock = threading.Lock()

    @property
    def is_own(self) -> bool:
        """Whether the steps are those that the host of rank 0 prints."""
        return self._host == self._of_rank_0

    def counts(self, event: Mapping[str, Any], host: str) -> bool:
        """Whether an event that `host` has printed counts."""
        is_step, is_own = event["event"] == "step", host == self._of_rank_0
        with self._lock:
            if is_step and (self._host is None or is_own):
                self._host = host
            return is_own or (is_step and host == self._host)


class SharedProgress:
    """Sends or receives progress lines on one host."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        #: Limits for steps and for other lines.
        self._budgets = [LineBudget(MAX_PER_SECOND, MAX_PER_SECOND) for _ in range(2)]
        #: Lines that could not be sent because there was no connection to the first host.
        self._unsent: "collections.deque[Mapping[str, Any]]" = collections.deque(maxlen=MAX_PER_SECOND)
        self._lock = threading.Lock()

    def add(self, line: str, event: Mapping[str, Any], now: float, of_rank_0: bool = False) -> None:
        """Sends a line of this host, printed at `now` (monotonic seconds), to the first host; drops lines above the limit per second.
        Of a host without rank 0, only steps and losses count there."""
        counts = of_rank_0 or event["event"] in ("step", "metric")
        if counts and self._budgets[event["event"] == "step"].admit("", now):
            short = {name: event[name] for name in FIELDS if name in event}
            short.update({name: value[:MAX_CHARACTERS] for name, value in short.items() if isinstance(value, (str, list))})
            with self._lock:
                self._unsent.append({"line": line[:LABEL_CHARACTERS], "event": short})
            self.send()

    def send(self) -> None:
        """Sends lines that could not be sent before."""
        with self._lock:
            while self._unsent and self._peers.share("progress", self._unsent[0]):
                self._unsent.popleft()

    def heard(self) -> List[Tuple[str, Mapping[str, Any], str]]:
        """On the first host: the lines received from the other hosts since the last call: their beginning, the event, and the host."""
        assert isinstance(self._peers, Coordinator)
        self._peers.end_requested()
        return [(str(one["line"]), one["event"], host) for host, one in self._peers.taken("progress")]
