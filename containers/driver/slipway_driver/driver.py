"""Starts and restarts the ranks of one attempt on one host, together with the drivers of the other hosts."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional, Union

from slipway_driver.attempt import Attempt
from slipway_driver.background import HandOverWatch, hand_over_of, heartbeat_of
from slipway_driver.coordinator import Coordinator, Decisions
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DONE, TRY_AGAIN
from slipway_driver.gpus import MeanUse, evidence
from slipway_driver.health import Health
from slipway_driver.health_gate import BEFORE_TRAINING, gate_of
from slipway_driver.host_run import HostRun
from slipway_driver.idle import IdleCoordinator, IdleHost, idle_host
from slipway_driver.job_monitor import JobMonitor
from slipway_driver.launchers import Launcher
from slipway_driver.log import emit, log
from slipway_driver.member import Member, Peers
from slipway_driver.newest_checkpoint import newest_checkpoint
from slipway_driver.peer_channel import patience
from slipway_driver.probe import Probe
from slipway_driver.progress import progress_line
from slipway_driver.restart_policy import Decision, Report, lost_driver
from slipway_driver.step_times import StepTimes


class Driver:
    """Starts and restarts the ranks of one attempt on this host until they succeed or a restart does not help."""

    def __init__(self, attempt: Attempt, returns: bool, kept: Optional[int]) -> None:
        """`kept`: the file of `Decisions`."""
        self._attempt = attempt
        self._launcher = Launcher(attempt)
        self._kept = Decisions(kept)
        self._peers = _peers_of(attempt, returns, self._kept)
        #: Whether a signal has ended the driver of this host before, and the hosts have not yet agreed on the next start.
        self._returns = returns
        self._round = 0
        self.stopped = threading.Event()
        #: Whether another host is the cause and is known to exit as well, or has ended already.
        self.cause_exits = False
        self._health = Health()
        self._gate = gate_of(attempt, quick=self._returns)
        #: The probe before the next start; None after the first start whose hosts have all passed the health check.
        self._probe: Optional[Probe] = None if self._returns else Probe(attempt, self._peers.end_requested)
        self._set_aside: List[Dict[str, str]] = self._kept.facts.get("setAside", [])
        self._idle: Optional[Union[IdleHost, IdleCoordinator]] = None
        self._run: Optional[HostRun] = None
        self._monitor: Optional[JobMonitor] = None
        self._heartbeat = heartbeat_of(attempt, self._facts)
        self._hand_over: Optional[HandOverWatch] = None
        #: Whether the control plane has requested a hand-over.
        self._leaves = False
        #: Step times of the whole attempt, over all starts that this host has seen.
        self._step_times = StepTimes()
        self._mean_use = MeanUse()
        if not self._returns:
            self._begin()
        elif isinstance(self._peers, Member):
            self._idle = idle_host(attempt, self._peers, False) if attempt.cluster.idle else IdleHost(self._peers, None)

    @property
    def step(self) -> Optional[int]:
        """The last step that a rank of this host printed, on the first host one of any host; None before training."""
        return self._monitor.step if self._monitor else None

    def _facts(self) -> Dict[str, Any]:
        """Fields of the heartbeat; none before the first start of a driver that has returned."""
        run, peers = self._monitor.facts() if self._monitor else {}, self._peers
        assert isinstance(peers, Coordinator)  # Only the first host has a heartbeat.
        return run and {
            **run,
            "evidence": evidence(peers.broken, run.get("slowHost"), peers.reports("identity"), peers.reports("cleared")),
            "starts": self._step_times.facts(),
            "handOver": self._leaves,
            "setAside": list(self._set_aside),
            "sparesLeft": peers.spares_left,
            **self._mean_use.facts(),
        }

    def _request_hand_over(self, reason: str) -> None:
        """Called when the control plane has requested a hand-over."""
        self._leaves = True
        if self._attempt.cluster.is_first:
            emit(progress_line("hand-over", reason=reason, step=self.step))
        if self._heartbeat:
            self._heartbeat.soon()

    def stop(self) -> None:
        """Called on SIGTERM, also while the next start is being prepared."""
        self.stopped.set()
        self._gate.stop()
        for waited_for in (self._peers, self._probe, self._run, self._idle):
            if waited_for:
                waited_for.stop()

    def run(self) -> Failure:
        """The outcome of this host; code 0 for success."""
        if self._heartbeat:
            self._step_times.on_first_step = self._heartbeat.soon
            self._heartbeat.start()
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
            for thread in (self._hand_over, self._heartbeat):
                if thread:
                    thread.stop()

    def _return(self) -> Optional[Failure]:
        """The first host has lost its driver, and with it its ranks: all ranks start again. None if they do, and if it had no ranks."""
        self._returns, attempt = False, self._attempt
        hosts = self._kept.facts.get("hosts", attempt.cluster.training_hosts)
        self._round = len(self._kept.facts.get("starts", []))
        self._attempt = attempt.on(hosts, attempt.environ["SLIPWAY_RESUME_FROM"], self._round)
        if self._attempt.cluster.idle:
            return self._begin()
        report = lost_driver(attempt.cluster.current_host)
        return self._settled(report, Failure(report.code, report.kind, None, report.reason, []))

    def _settled(self, report: Report, end: Failure) -> Optional[Failure]:
        """Agrees with the other hosts on what follows: None if the ranks start again, otherwise `end`."""
        decision, resume_from = self._peers.settle(report)
        if decision.restart:
            return self._next_round(decision, resume_from)
        self.cause_exits = decision.cause.host != report.host or self._peers.another_ended
        if self._attempt.job.restarts_in_place:
            log("no restart in place: %s" % decision.why)
        return end

    def _begin(self) -> None:
        """Prepares this host for the next start, as a training host or an idle host."""
        attempt, trains = self._attempt, not self._attempt.cluster.idle
        if trains or attempt.cluster.is_first:
            if self._idle:
                self._idle.leave()
            self._step_times.begin(self._round)
            self._monitor = monitor = JobMonitor(attempt, self._peers, self._step_times, self._mean_use)
            self._run = HostRun(attempt, self._launcher, self._peers, monitor) if trains else None
            self._idle = None
            if isinstance(self._peers, Coordinator) and not trains:
                self._idle = IdleCoordinator(attempt, self._peers, monitor)
        elif self._idle is None:
            assert isinstance(self._peers, Member)
            self._idle = idle_host(attempt, self._peers, set_aside=self._run is not None)
            self._run = self._monitor = None
        if attempt.compile_cache:
            attempt.compile_cache.writes = attempt.cluster.has_rank_0
        if self._hand_over is None:
            self._hand_over = hand_over_of(attempt, self._request_hand_over)
            if self._hand_over:
                self._hand_over.start()
        if self.stopped.is_set():
            self.stop()

    def _train(self) -> Optional[Failure]:
        """Runs one start of the ranks; None if the ranks start again."""
        run, monitor = self._run, self._monitor
        assert run is not None and monitor is not None
        unfit = self._gate.check()
        self._peers.share("cleared", self._gate.cleared)
        unstarted = unfit or self._run_probe(monitor)
        if unstarted:
            run.abandon()
        end = unstarted or run.run()
        if not unfit and not run.stopping and end.code != DONE:
            end = self._health.judged(end, self._health.await_gone(run.pids))
        report = Report(self._attempt.cluster.current_host, end.code, end.kind, end.reason[:300], monitor.step)
        if run.stopping or end.code == DONE:
            self._peers.finish(report)
            return end
        settled = self._settled(report, end)
        if settled and not unfit and self._attempt.cluster.is_first:
            monitor.efa.publish()  # Another host may have connected only to report its end and its EFA verdict.
        return settled

    def _run_probe(self, monitor: JobMonitor) -> Optional[Failure]:
        """The failure of another host that has ended the probe; None if the ranks may start. A broken host would only delay the others."""
        if self._probe is None:
            return None
        monitor.efa.bandwidth = self._probe.run()
        requested = self._probe.requested
        return Failure(TRY_AGAIN, "peer-lost", None, "another host ended before training: %s" % requested, []) if requested else None

    def _wait(self, idle: Union[IdleHost, IdleCoordinator]) -> Optional[Failure]:
        """Waits while this host does not train; None when the ranks start again, on this host or on others."""
        heard = idle.wait()
        if isinstance(heard, Failure):
            return heard
        decision, resume_from = heard
        if decision.restart:
            return self._next_round(decision, resume_from)
        cause = decision.cause
        self.cause_exits = cause.host != self._attempt.cluster.current_host
        if not self.cause_exits:
            return Failure(cause.code, cause.kind, None, cause.reason, [])
        return Failure(TRY_AGAIN, "peer-lost", None, "another host's ranks ended: %s" % cause.kind, [])

    def _next_round(self, decision: Decision, resume_from: str) -> None:
        """Prepares this host for the start that was decided."""
        cause, before = decision.cause, self._attempt.cluster.training_hosts
        # A driver that was started again does not know who was replaced before.
        replaced = {old: new for old, new in zip(before, decision.hosts) if old != new and not self._returns}
        self._returns = False
        facts = {"host": cause.host, "reason": cause.reason, "resumeFrom": resume_from, **({"replaced": replaced} if replaced else {})}
        emit(progress_line("restart", state="begin", round=decision.number, **facts))
        for host in replaced:
            reason = cause.reason if host == cause.host else "broken at the same time as %s" % cause.host
            self._set_aside.append({"host": host, "reason": reason})
        self._kept.keep(setAside=self._set_aside)
        self._round, self._attempt = decision.number, self._attempt.on(decision.hosts, resume_from, decision.number)
        # The hosts that were there from the start know all causes, so they agree on whether there is a probe.
        again = self._probe is not None and cause.reason.startswith(BEFORE_TRAINING)
        self._probe = Probe(self._attempt, self._peers.end_requested) if again else None
        self._begin()


def _peers_of(attempt: Attempt, is_again: bool, kept: Decisions) -> Peers:
    """The peers of this host. They are used even if restarts in place are disabled: a failure on one host then ends the ranks on all hosts
    at once instead of after the timeout of a collective. `is_again`: a signal has ended the driver of this host before."""
    job, cluster, environ = attempt.job, attempt.cluster, attempt.environ

    def newest() -> str:
        uri, started_from = environ["SLIPWAY_CHECKPOINT_URI"], environ["SLIPWAY_RESUME_FROM"]
        # With several hosts, a checkpoint in a folder of this one may not be on the others.
        shared = job.checkpoint_mode != "managed" or len(cluster.training_hosts) == 1
        marker = job.committed_marker if shared else None
        return newest_checkpoint(uri) or (newest_checkpoint(uri, marker=marker) if marker else "") or started_from

    several = len(cluster.training_hosts) + len(cluster.idle_hosts) > 1
    # Without a secret, anyone in the network could speak for a host.
    talks = several and (cluster.takes_part or cluster.idle) and bool(job.restart_secret)
    port, bind_to, secret, seconds = int(environ["MASTER_PORT"]) + 1, environ["SLIPWAY_BIND_ADDRESS"], job.restart_secret, patience(environ)
    # With Ray, a host reports a process of Ray that ends, and the loss of another host, as hardware.
    gpus = [] if job.launcher == "ray" else attempt.hardware.get("gpuIds", [])
    if talks and not cluster.is_first:
        return Member(cluster.current_host, environ["MASTER_ADDR"], port, bind_to, secret, seconds, is_again, gpus)
    hosts, spares = (cluster.training_hosts, cluster.idle_hosts) if talks else ((cluster.current_host,), ())
    restarts = job.restarts_in_place if talks or (cluster.takes_part and len(cluster.training_hosts) == 1) else 0
    first = Coordinator(hosts, bind_to, port, secret, restarts, newest, seconds, spares, kept)
    first.share("identity", gpus)
    return first
