"""The driver of one host: prepares the host, runs the ranks and returns the container's exit code."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional

from slipway_driver.attempt import Attempt, prepare
from slipway_driver.cuda_driver import driver_line, has_compat
from slipway_driver.driver_start import Decisions, DriverStart
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DONE, ENVIRONMENT, TRY_AGAIN, DriverError, class_of
from slipway_driver.failure import write_failure
from slipway_driver.gpu_evidence import evidence
from slipway_driver.gpu_use import MeanUse
from slipway_driver.hand_over import hand_over_of
from slipway_driver.health import Health
from slipway_driver.health_gate import BEFORE_TRAINING, gate_of
from slipway_driver.heartbeat import Heartbeat, heartbeat_of
from slipway_driver.host_run import HostRun
from slipway_driver.idle_host import IdleHost, idle_host
from slipway_driver.launcher import Launcher
from slipway_driver.log import emit, log
from slipway_driver.member import Member
from slipway_driver.paths import Paths, paths_of
from slipway_driver.peers import patience, peers_of
from slipway_driver.probe import Probe
from slipway_driver.progress import progress_line
from slipway_driver.redaction import redacted, secrets_of
from slipway_driver.remains import Remains
from slipway_driver.restart_policy import Decision, Report, lost_driver
from slipway_driver.step_times import StepTimes

# A host that only lost its peer waits, so that the host with the real error fails first; after SIGTERM, the job ends already.
PEER_GRACE_SECONDS = 10.0
# Shorter if that host is known to exit at the same time, or has ended already.
EXITING_GRACE_SECONDS = 2.0


class Driver:
    """Starts and restarts the ranks of one attempt on this host until they succeed or a restart does not help."""

    def __init__(self, attempt: Attempt, start: DriverStart) -> None:
        self._attempt = attempt
        self._launcher = Launcher(attempt)
        self._kept = Decisions(start.kept)
        self._peers = peers_of(attempt, start, self._kept)
        #: Whether a signal has ended the driver of this host before, and the hosts have not yet agreed on the next start.
        self._returns = start.number > 0
        self._round = 0
        self.stopped = threading.Event()
        #: Whether another host is the cause and is known to exit as well, or has ended already.
        self.cause_exits = False
        self._health = Health()
        self._gate = gate_of(attempt, quick=self._returns)
        self._remains = Remains()
        #: The probe before the next start; None after the first start whose hosts have all passed the health check.
        self._probe: Optional[Probe] = None if self._returns else Probe(attempt, self._peers.end_requested)
        self._set_aside: List[Dict[str, str]] = self._kept.facts.get("setAside", [])
        self._idle: Optional[IdleHost] = None
        self._run: Optional[HostRun] = None
        #: Whether the control plane has requested a hand-over.
        self.hand_over = False
        #: Step times of the whole attempt, over all starts in which this host took part.
        self.step_times = StepTimes()
        self._mean_use = MeanUse()
        if not self._returns:
            self._begin()
        elif isinstance(self._peers, Member):
            self._idle = idle_host(attempt, self._peers, False) if attempt.cluster.idle else IdleHost(self._peers, None)

    @property
    def step(self) -> Optional[int]:
        """The last step that a rank of this host printed; None before training."""
        return self._run.step if self._run else None

    def facts(self) -> Dict[str, Any]:
        """Fields of the heartbeat; none before the first start of a driver that has returned."""
        run = self._run.facts() if self._run else {}
        return run and {
            **run,
            "evidence": evidence(self._peers.broken, run.get("slowHost"), self._peers.gpus, self._peers.cleared),
            "starts": self.step_times.facts(),
            "handOver": self.hand_over,
            "setAside": list(self._set_aside),
            "sparesLeft": self._peers.spares_left,
            **self._mean_use.facts(),
        }

    def request_hand_over(self, reason: str, heartbeat: Optional[Heartbeat]) -> None:
        """Called when the control plane has requested a hand-over."""
        self.hand_over = True
        emit(progress_line("hand-over", reason=reason, step=self.step))
        if heartbeat:
            heartbeat.soon()

    def stop(self) -> None:
        """Called on SIGTERM, also while the next start is being prepared."""
        self.stopped.set()
        self._gate.stop()
        for waited_for in (self._peers, self._probe, self._run, self._idle):
            if waited_for:
                waited_for.stop()

    def run(self) -> Failure:
        """The outcome of this host; code 0 for success."""
        try:
            end = self._return() if self._returns and not self._idle else None
            while end is None:
                end = self._wait(self._idle) if self._idle else self._train()
            return end
        finally:
            if self._idle:
                self._idle.leave()
            self._peers.close()
            self._launcher.close()

    def _return(self) -> Optional[Failure]:
        """The host that decides has lost its driver, and with it its ranks: all ranks start again. None if they do."""
        self._returns, attempt = False, self._attempt
        hosts = self._kept.facts.get("hosts", attempt.cluster.training_hosts)
        self._attempt = attempt.on(attempt.cluster.with_training(hosts), attempt.environ["SLIPWAY_RESUME_FROM"])
        report = lost_driver(attempt.cluster.current_host)
        decision, resume_from = self._peers.settle(report)
        if decision.restart:
            return self._next_round(decision, resume_from)
        log("no restart in place: %s" % decision.why)
        return Failure(report.code, report.kind, None, report.reason, [])

    def _begin(self) -> None:
        """Prepares this host for the next start, as a training host or an idle host."""
        if not self._attempt.cluster.idle:
            if self._idle:
                self._idle.leave()
            self._idle, self._run = None, HostRun(self._attempt, self._launcher, self._peers, self.step_times, self._mean_use)
            self.step_times.begin(self._round)
        elif self._idle is None:
            self._idle = idle_host(self._attempt, self._peers, set_aside=self._run is not None)
            self._run = None
        if self.stopped.is_set():
            self.stop()

    def _train(self) -> Optional[Failure]:
        """Runs one start of the ranks; None if the ranks start again."""
        run = self._run
        assert run is not None
        unfit = self._gate.check()
        self._peers.share_cleared(self._attempt.cluster.current_host, self._gate.cleared)
        unstarted = unfit or self._run_probe(run)
        if unstarted:
            run.abandon()
        end = unstarted or run.run()
        self.step_times.end(time.time())
        if not unfit and not run.stopping and end.code != DONE:
            end = self._health.judged(end, self._remains.await_gone(run.pids))
        report = Report(self._attempt.cluster.current_host, end.code, end.kind, end.reason[:300], run.step)
        if run.stopping or end.code == DONE:
            self._peers.finish(report)
            return end
        decision, resume_from = self._peers.settle(report)
        if decision.restart:
            return self._next_round(decision, resume_from)
        if not unfit:
            run.report_late_hosts()
        self.cause_exits = decision.cause.host != report.host or self._peers.another_ended
        if self._attempt.job.restarts_in_place:
            log("no restart in place: %s" % decision.why)
        return end

    def _run_probe(self, run: HostRun) -> Optional[Failure]:
        """The failure of another host that has ended the probe; None if the ranks may start. A broken host would only delay the others."""
        if self._probe is None:
            return None
        run.efa.bandwidth = self._probe.run()
        requested = self._probe.requested
        return Failure(TRY_AGAIN, "peer-lost", None, "another host ended before training: %s" % requested, []) if requested else None

    def _wait(self, idle: IdleHost) -> Optional[Failure]:
        """Waits while this host does not train; None when the ranks start again, on this host or on others."""
        heard = idle.wait()
        if isinstance(heard, Failure):
            return heard
        decision, resume_from = heard
        if decision.restart:
            return self._next_round(decision, resume_from)
        self.cause_exits = True
        return Failure(TRY_AGAIN, "peer-lost", None, "another host's ranks ended: %s" % decision.cause.kind, [])

    def _next_round(self, decision: Decision, resume_from: str) -> None:
        """Prepares this host for the start that was decided."""
        self._round = decision.number
        cause, before = decision.cause, self._attempt.cluster.training_hosts
        # A driver that was started again does not know who was replaced before.
        replaced = {old: new for old, new in zip(before, decision.hosts) if old != new and not self._returns}
        self._returns = False
        facts = {"host": cause.host, "reason": cause.reason, "resumeFrom": resume_from, **({"replaced": replaced} if replaced else {})}
        emit(progress_line("restart", state="begin", round=self._round, **facts))
        for host in replaced:
            reason = cause.reason if host == cause.host else "broken at the same time as %s" % cause.host
            self._set_aside.append({"host": host, "reason": reason})
        self._kept.keep(setAside=self._set_aside)
        attempt = self._attempt
        if decision.hosts != before or resume_from != attempt.environ["SLIPWAY_RESUME_FROM"]:
            attempt = attempt.on(attempt.cluster.with_training(decision.hosts), resume_from)
        environ = dict(attempt.environ, SLIPWAY_RESTART=str(self._round))
        self._attempt = dataclasses.replace(attempt, environ=environ)
        # The hosts that were there from the start know all causes, so they agree on whether there is a probe.
        again = self._probe is not None and cause.reason.startswith(BEFORE_TRAINING)
        self._probe = Probe(self._attempt, self._peers.end_requested) if again else None
        self._begin()


def _run_attempt(paths: Paths, start: DriverStart) -> int:
    began = time.time()
    attempt = prepare(paths, os.environ, start.started_at, log)
    cluster, job = attempt.cluster, attempt.job
    emit(progress_line("inventory", host=cluster.current_host, rank=None if cluster.idle else cluster.rank, **attempt.hardware))
    if drivers := driver_line(attempt.hardware, has_compat()):
        log(drivers)
    place = "spare host" if cluster.idle else "host %d" % cluster.rank
    where = "%s of %d (%s)" % (place, len(cluster.training_hosts), cluster.current_host)
    how = "%s, %d process(es) here" % (job.launcher, attempt.local_ranks)
    log("run %s attempt %d: %s, %s; ready after %.1f s" % (job.run_id, job.attempt, where, how, time.time() - began))
    driver = Driver(attempt, start)
    signal.signal(signal.SIGTERM, lambda _number, _frame: threading.Thread(target=driver.stop).start())
    heartbeat = heartbeat_of(attempt, driver.facts)
    hand_over = hand_over_of(attempt, lambda reason: driver.request_hand_over(reason, heartbeat))
    if heartbeat:
        driver.step_times.on_first_step = heartbeat.soon
        heartbeat.start()
    if hand_over:
        hand_over.start()
    try:
        end = driver.run()
    finally:
        if hand_over:
            hand_over.stop()
        if heartbeat:
            heartbeat.stop()
    if end.kind == "peer-lost" and not driver.stopped.is_set():
        grace = min(EXITING_GRACE_SECONDS if driver.cause_exits else PEER_GRACE_SECONDS, patience(attempt.environ))
        log("this host only lost its peers: it ends in %d s, so that the host with the cause ends first" % grace)
        driver.stopped.wait(grace)
    _emit_end(end, driver, paths, cluster.current_host)
    return end.code


def _emit_end(end: Failure, driver: Driver, paths: Paths, host: str) -> None:
    """Writes the failure file and the last progress line."""
    if end.code != DONE:
        fields: Dict[str, Any] = {"host": end.host or host, "rank": end.rank, "step": driver.step}
        write_failure(paths.failure, code=end.code, kind=end.kind, reason=end.reason, lines=end.lines, **fields)
    reason = {**({"notice": "ended-early"} if end.code == DONE else {}), "reason": end.reason} if end.reason else {}
    emit(progress_line("exit", code=end.code, **{"class": end.kind}, host=end.host or host, **reason))


def _stop_early(_number: int, _frame: Any) -> None:
    """Handles SIGTERM while this host resolves names or installs packages: by default, process 1 of a container ignores it."""
    raise DriverError(TRY_AGAIN, "stopped before the ranks had started")


def main(start: DriverStart) -> int:
    """Runs this host's part of the job and returns the container's exit code."""
    signal.signal(signal.SIGTERM, _stop_early)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # Unencodable characters must not end the thread that writes the log.
    paths = paths_of()
    try:
        return _run_attempt(paths, start)
    except DriverError as error:
        return _refuse(paths, error.code, error.reason)
    except Exception as error:  # Last resort: a job must not end without a reason.
        for line in traceback.format_exc().rstrip().splitlines():
            emit(line)
        return _refuse(paths, ENVIRONMENT, "the driver failed: %s: %s" % (type(error).__name__, error))


def _refuse(paths: Paths, code: int, reason: str) -> int:
    reason = redacted(reason, secrets_of(os.environ))
    kind, host = class_of(code), _host_name(paths)
    write_failure(paths.failure, code=code, kind=kind, host=host, rank=None, step=None, reason=reason)
    emit(progress_line("exit", code=code, **{"class": kind}, reason=reason))
    return code


def _host_name(paths: Paths) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads((Path(paths.config) / "resourceconfig.json").read_text()).get("current_host", ""))
    return ""
