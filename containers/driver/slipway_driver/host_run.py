"""Runs one start of the ranks on one host, and processes their output."""

from __future__ import annotations

import shutil
import threading
import time
from typing import Any, List, Mapping, Optional, Sequence

from slipway_driver.attempt import Attempt, new_state_folder
from slipway_driver.dumps import dump_ranks, keep_dumps, place_of
from slipway_driver.efa_report import EFA_SECONDS
from slipway_driver.error_lines import NOT_JOINED
from slipway_driver.errors import Failure, after_hang, classify, first_real, oom_kills
from slipway_driver.exit_codes import DONE, HANG, OUT_OF_MEMORY, TRY_AGAIN, class_of, shell_code
from slipway_driver.gpus import GpuUse, every
from slipway_driver.job_monitor import JobMonitor
from slipway_driver.launchers import Launcher, read_launcher_end
from slipway_driver.log import emit, log, redacted, secrets_of
from slipway_driver.member import Peers
from slipway_driver.output_lines import SHOWN, STATE
from slipway_driver.progress import progress_line
from slipway_driver.restart_policy import FOLLOWING_KINDS
from slipway_driver.supervisor import Supervisor
from slipway_driver.watchdog import Watchdog, steps_of

#: How long this host's ranks may take to record an error of their own after another host has lost its peers.
OWN_ERROR_SECONDS = 3.0
LONGEST_REASON = 300


class HostRun:
    """One start of the ranks, until they have ended."""

    def __init__(self, attempt: Attempt, launcher: Launcher, peers: Peers, monitor: JobMonitor) -> None:
        self._attempt, self._launcher, self._peers, self._monitor = attempt, launcher, peers, monitor
        self._gpu_use = GpuUse(every(attempt.environ, len(attempt.cluster.training_hosts)))
        #: Event lines that could not be read, or not completely.
        self._unread = 0
        #: What torchrun says about hosts that have not come.
        self._not_joined = ""
        self._requested_at: Optional[float] = None
        self._ended: Optional[Failure] = None
        self._oom_before, self._hung_at, self._state = oom_kills(), 0.0, new_state_folder()
        self._stop_requested = threading.Event()
        #: Process ids of the ranks of this start, set after they have ended.
        self.pids: List[int] = []
        self._supervisor: Optional[Supervisor] = None

    @property
    def stopping(self) -> bool:
        """Whether SIGTERM was received."""
        return self._stop_requested.is_set()

    def run(self) -> Failure:
        """Starts the ranks and returns their outcome; code 0 for success."""
        attempt = self._attempt
        self._monitor.started()
        self._supervisor = Supervisor(self._launcher.start(attempt, self._state), self._state, attempt.local_ranks, self._on_line)
        if self._stop_requested.is_set():
            # SIGTERM was received before the ranks were started.
            self.stop()
        self._gpu_use.start()
        try:
            launcher_code = self._supervisor.wait(self._poll)
            self._monitor.efa.publish(EFA_SECONDS if launcher_code == 0 and self._ended is None else 0.0)
            secrets = secrets_of(attempt.environ, attempt.job.restart_secret)
            self._monitor.hear_others()
            end = self._refusal() or self._outcome(launcher_code)
            end = end._replace(reason=redacted(end.reason, secrets), lines=[redacted(line, secrets) for line in end.lines])
            self._monitor.ended_early = end.reason if end.code == DONE else ""
            return end
        finally:
            self._monitor.ended()
            self._gpu_use.end()
            self.pids = self._supervisor.pids()
            if self._unread > 1:
                log("%d event lines were ignored in this start" % self._unread)
            shutil.rmtree(str(self._state), ignore_errors=True)
            self._keep_dumps()

    def abandon(self) -> None:
        """Removes the state folder if the ranks will not be started."""
        self._monitor.ended()
        shutil.rmtree(str(self._state), ignore_errors=True)

    def _keep_dumps(self) -> None:
        """Saves the dumps of this start, because the next start would overwrite them."""
        attempt, host = self._attempt, self._attempt.cluster.current_host
        place = place_of(attempt.job.heartbeat_uri, attempt.job.attempt, host)
        round_number = attempt.environ.get("SLIPWAY_RESTART", "0")
        keep_dumps(attempt.dumps, place and "%s/%s" % (place, round_number), attempt.paths.output_data / "dumps" / host / round_number)

    def stop(self) -> None:
        """Called on SIGTERM: forwards it to every rank, which then has time to save."""
        self._stop_requested.set()
        if self._supervisor is not None:
            log("SIGTERM: the ranks have 100 s to save and exit")
            self._supervisor.stop()

    def _on_line(self, line: str, kind: str) -> None:
        if kind == SHOWN:  # Read before as a state, or read later as a line.
            return emit(line)
        if "Error" in line and NOT_JOINED.search(line):
            self._not_joined = line
        reader = self._monitor.reader
        event = reader.read(line)
        if reader.issue:
            self._unread += 1
            if self._unread == 1:
                log("an event line cannot be read and is ignored, like all others of this kind: %s: %s" % (reader.issue, line[:200]))
            line = progress_line(**event) if event else ""
        if kind != STATE and (line or not reader.issue):
            emit(line)
        reader.report_format()
        self._monitor.efa.own.feed(line)
        if event is not None:
            self._monitor.add(line, event)

    def _refusal(self) -> Optional[Failure]:
        """The failure if the job must not continue, or not succeed, over this network; None otherwise."""
        efa = self._monitor.efa
        # Decide only after NCCL has selected a network, at the latest at the first step or at the end.
        ended = self._supervisor is not None and self._supervisor.ended
        if self._stop_requested.is_set() or self._ended is not None or not (efa.own.settled or self._monitor.step is not None or ended):
            return None
        return efa.refusal()

    def _poll(self) -> None:
        supervisor = self._supervisor
        if supervisor is None or supervisor.stopping or self._ended is not None:
            return
        use = self._gpu_use.take()
        if use is not None:
            self._monitor.report_gpus(use)
        refused = self._refusal()
        if refused is not None:
            return self._end(refused)
        self._monitor.hear_others()
        requested = self._peers.end_requested()
        self._monitor.efa.publish_changes()
        if requested is not None:
            return self._end_as_requested(requested)
        hang = self._monitor.hang()
        if hang:
            self._hung_at = time.monotonic()
            self._peers.announce(class_of(HANG))
            self._dump_ranks()
            self._end(Failure(HANG, class_of(HANG), None, hang, []))

    def _end_as_requested(self, kind: str) -> None:
        """Another host's ranks have ended. If it only lost a peer, the cause may be on this host and not be recorded yet."""
        self._requested_at = self._requested_at or time.monotonic()
        own = self._own_failure()
        if own is None and kind in FOLLOWING_KINDS and time.monotonic() < self._requested_at + OWN_ERROR_SECONDS:
            return
        if kind == class_of(HANG):
            self._dump_ranks()
        if own is not None and own.kind not in FOLLOWING_KINDS:
            self._end(own)
        else:
            self._end(Failure(TRY_AGAIN, "peer-lost", None, "another host's ranks ended: %s" % kind, []))

    def _end(self, failure: Failure) -> None:
        self._ended = failure
        if self._supervisor is not None:
            self._supervisor.kill()

    def _dump_ranks(self) -> None:
        if self._supervisor is not None:
            dump_ranks(self._supervisor.running(), self._attempt.dumps)

    def _own_failure(self) -> Optional[Failure]:
        """The first real error of this host's ranks; None if no rank has recorded one."""
        first = first_real(self._supervisor.records() if self._supervisor else [])
        return classify(first, oom_kills() > self._oom_before) if first is not None else None

    def _launcher_failure(self, reported: Failure) -> Failure:
        """An error of the launcher takes precedence over those of its ranks, which fail because of it."""
        own_host = self._attempt.cluster.current_host
        if reported.host == own_host and oom_kills() > self._oom_before:
            return Failure(OUT_OF_MEMORY, "host-memory", None, "the kernel killed the launcher's processes: out of host memory", [])
        return reported._replace(host="") if reported.host == own_host else reported

    def _outcome(self, launcher_code: int) -> Failure:
        assert self._supervisor is not None
        if self._ended is not None:
            return after_hang(self._ended, self._supervisor.records(), self._hung_at)
        reported = read_launcher_end(self._state)
        if reported is not None:
            return self._launcher_failure(reported)
        own, records, killed_after = self._own_failure(), self._supervisor.records(), self._supervisor.killed_after
        if killed_after is not None and (own is None or (own.code, own.kind) == (OUT_OF_MEMORY, "user-code")):
            reason = "the ranks had not ended %d s after SIGTERM and were killed" % killed_after
            return Failure(TRY_AGAIN, class_of(TRY_AGAIN), None, reason, [])
        if own is not None:
            return own
        if len(records) >= self._attempt.local_ranks:
            watchdog = self._monitor.watchdog if self._monitor.sees_all else None
            early = "" if self.stopping else ended_early(self._attempt, watchdog, records)
            return Failure(DONE, class_of(DONE), None, early, [])
        return self._without_records(launcher_code, self._supervisor)

    def _without_records(self, launcher_code: int, supervisor: Supervisor) -> Failure:
        """The outcome if ranks were killed with their wrappers, or have not started."""
        started, code = bool(supervisor.pids()), shell_code(launcher_code)
        if supervisor.stopping and not started:
            return Failure(TRY_AGAIN, class_of(TRY_AGAIN), None, "stopped before the ranks had started", [])
        if self._attempt.job.launcher == "mpi" and self._attempt.cluster.takes_part and (not self._attempt.cluster.has_rank_0 or started):
            # Open MPI's daemon exits with code 0 regardless of what happened to its ranks.
            return Failure(TRY_AGAIN, "peer-lost", None, "mpirun ended this host's ranks before they had written a record", [])
        if launcher_code == 0:
            return Failure(DONE, class_of(DONE), None, "", [])
        if self._not_joined and not started:
            reason = "the launchers of the hosts did not find each other: %s" % self._not_joined
            return Failure(TRY_AGAIN, "peer-lost", None, reason[:LONGEST_REASON], [])
        if launcher_code > 0 or not started:
            reason = "the launcher exited with code %d before its ranks had %s" % (code, "ended" if started else "started")
            return Failure(code, class_of(code), None, reason, [])
        killed = {"rank": None, "code": launcher_code, "endedAt": 0.0}
        end = classify(killed, oom_kills() > self._oom_before)
        return end if end.kind == "host-memory" else end._replace(reason=end.reason + ", which also ended the driver's process of the rank")


def ended_early(attempt: Attempt, watchdog: Optional[Watchdog], records: Sequence[Mapping[str, Any]]) -> str:
    """Why a start with exit code 0 has not done its work, "" if it has. `watchdog`: that of a host that has seen all steps."""
    steps, seen = steps_of(attempt), watchdog.step if watchdog else None
    if watchdog and seen is not None and steps is not None:
        # The last step may be numbered steps - 1, and a script may print only every n-th step.
        return "" if seen + watchdog.stride >= steps else "exit code 0 after step %d of %d" % (seen, steps)
    unhandled = next((record["unhandled"] for record in records if record.get("unhandled")), "")
    if unhandled:
        return ("exit code 0 after an unhandled error: %s" % unhandled)[:LONGEST_REASON]
    left = next((record["left"] for record in records if record.get("left")), "")
    if left:
        return ("exit code 0 while a program that it had started was still running: %s" % left)[:LONGEST_REASON]
    # A resumed start may find that nothing is left to do.
    if watchdog and steps is not None and watchdog.shows_progress and not attempt.environ.get("SLIPWAY_RESUME_FROM"):
        return "exit code 0 before step 1 of %d" % steps
    return ""
