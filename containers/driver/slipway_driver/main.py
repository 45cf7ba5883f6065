"""The first process of a container, and the driver that it starts, and starts again if a signal has ended it.

The end of the first process is that of the container, and SageMaker then ends the job on all hosts. The process therefore does nothing that
can fail later: it forks the driver, forwards SIGTERM to it and waits. It owns the memory that must outlive a driver: the copies of the
ranks' state, and the decisions of the first host. The driver prepares the host, runs the ranks and returns the container's exit code.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Dict, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.driver import Driver
from slipway_driver.errors import Failure, write_failure
from slipway_driver.exit_codes import DONE, ENVIRONMENT, TRY_AGAIN, DriverError, class_of, shell_code
from slipway_driver.inventory import COMPAT_FOLDER, driver_line
from slipway_driver.job import Job, Paths, paths_of, read_job
from slipway_driver.log import emit, log, redacted, secrets_of
from slipway_driver.peer_channel import patience
from slipway_driver.progress import progress_line
from slipway_driver.rank import PR_SET_CHILD_SUBREAPER, die_with_parent, prctl

# A host that only lost its peer waits, so that the host with the real error fails first; after SIGTERM, the job ends already.
PEER_GRACE_SECONDS = 10.0
# Shorter if that host is known to exit at the same time, or has ended already.
EXITING_GRACE_SECONDS = 2.0


def _run_attempt(paths: Paths, number: int, started_at: float, kept: Optional[int]) -> int:
    began = time.time()
    attempt = Attempt(paths, os.environ, started_at)
    cluster, job = attempt.cluster, attempt.job
    emit(progress_line("inventory", host=cluster.current_host, rank=None if cluster.idle else cluster.rank, **attempt.hardware))
    if drivers := driver_line(attempt.hardware, any(COMPAT_FOLDER.glob("libcuda.so*"))):
        log(drivers)
    place = "spare host" if cluster.idle else "host %d" % cluster.rank
    where = "%s of %d (%s)" % (place, len(cluster.training_hosts), cluster.current_host)
    how = "%s, %d process(es) here" % (job.launcher, attempt.local_ranks)
    log("run %s attempt %d: %s, %s; ready after %.1f s" % (job.run_id, job.attempt, where, how, time.time() - began))
    driver = Driver(attempt, number > 0, kept)
    signal.signal(signal.SIGTERM, lambda _number, _frame: threading.Thread(target=driver.stop).start())
    end = driver.run()
    if end.kind == "peer-lost" and not driver.stopped.is_set():
        grace = min(EXITING_GRACE_SECONDS if driver.cause_exits else PEER_GRACE_SECONDS, patience(attempt.environ))
        log("this host only lost its peers: it ends in %d s, so that the host with the cause ends first" % grace)
        driver.stopped.wait(grace)
    return _emit_end(end._replace(host=end.host or cluster.current_host), driver.step, paths)


def _emit_end(end: Failure, step: Optional[int], paths: Paths) -> int:
    """Writes the failure file and the last progress line; returns the exit code."""
    if end.code != DONE:
        write_failure(paths.failure, end, step)
    reason = {**({"notice": "ended-early"} if end.code == DONE else {}), "reason": end.reason} if end.reason else {}
    emit(progress_line("exit", code=end.code, **{"class": end.kind}, host=end.host, **reason))
    return end.code


def _stop_early(_number: int, _frame: Any) -> None:
    """Handles SIGTERM while this host resolves names or installs packages: by default, process 1 of a container ignores it."""
    raise DriverError("stopped before the ranks had started", TRY_AGAIN)


def run_driver(number: int, started_at: float, kept: Optional[int]) -> int:
    """Runs this host's part of the job and returns the container's exit code.

    `number`: 0 for the first driver of its container; `started_at`: when that started; `kept`: the anonymous file of `Decisions`.
    """
    signal.signal(signal.SIGTERM, _stop_early)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # Unencodable characters must not end the thread that writes the log.
    paths = paths_of()
    try:
        return _run_attempt(paths, number, started_at, kept)
    except DriverError as error:
        return _refuse(paths, error.code, error.reason)
    except Exception as error:  # Last resort: a job must not end without a reason.
        for line in traceback.format_exc().rstrip().splitlines():
            emit(line)
        return _refuse(paths, ENVIRONMENT, "the driver failed: %s: %s" % (type(error).__name__, error))


def _refuse(paths: Paths, code: int, reason: str) -> int:
    host = ""
    with contextlib.suppress(OSError, ValueError):
        host = str(json.loads((paths.config / "resourceconfig.json").read_text()).get("current_host", ""))
    return _emit_end(Failure(code, class_of(code), None, redacted(reason, secrets_of(os.environ)), [], host), None, paths)


#: Something that kills one driver after the other is not an accident.
MAX_STARTS = 4
#: What a killed driver leaves behind ends within this time; otherwise the host cannot be used again.
GONE_SECONDS = 60.0
POLL_SECONDS = 0.05


class Container:
    """The drivers of one container, one after the other."""

    def __init__(self) -> None:
        self._started_at = time.time()
        job: Optional[Job] = None
        with contextlib.suppress(DriverError):  # The driver reports it.
            job = read_job(paths_of().channel("job") / "job.json")
        self._memory: Dict[str, str] = memory_variables(job) if job else {}
        self._kept = anonymous_file("slipway-decisions")
        self._may_restart = bool(job and job.restarts_in_place)
        self._driver: Optional[int] = None
        self._stopped = False

    def run(self) -> int:
        """The exit code of the container. Returns in the process of each driver, too."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # What a killed driver leaves behind becomes a child of this process.
        signal.signal(signal.SIGTERM, self._stop)
        number = 0
        while True:
            code = self._run_driver(number)
            number += 1
            if code >= 0 or self._stopped or not self._may_restart or number == MAX_STARTS:
                return shell_code(code)
            log("the driver was ended by signal %d; it is started again on this host" % -code)
            if not end_children():
                log("its processes have not ended within %d s" % GONE_SECONDS)
                return shell_code(code)

    def _run_driver(self, number: int) -> int:
        """Runs one driver; returns how it ended."""
        # A signal between the fork and the driver's own handler would reach the handler of this process in the driver.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self._driver = os.fork()
        if self._driver == 0:
            die_with_parent()
            os.environ.update(self._memory)
            raise SystemExit(run_driver(number, self._started_at, self._kept))
        if self._stopped:
            self._stop()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        while True:
            pid, status = os.wait()
            if pid == self._driver:
                self._driver = None
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)

    def _stop(self, *_signal: Any) -> None:
        self._stopped = True
        if self._driver is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._driver, signal.SIGTERM)


def end_children(seconds: float = GONE_SECONDS) -> bool:
    """Kills every process below this one; False if one is left."""
    deadline = time.monotonic() + seconds
    children = Path("/proc/%d/task/%d/children" % (os.getpid(), os.getpid()))
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                for pid in children.read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(POLL_SECONDS)
        return False
    return True


def anonymous_file(name: str) -> Optional[int]:
    """The descriptor of a file in memory; None where there are none."""
    with contextlib.suppress(AttributeError, OSError):
        return os.memfd_create(name)
    return None


def memory_variables(job: Job) -> Dict[str, str]:
    """Creates the memory of each rank of this host, for the copies of its state; none if the run keeps no copies.

    Anonymous files are used because the size of /dev/shm is limited in containers. The ranks open theirs through /proc. They are empty
    until a rank allocates them, and are freed at the end of the job.
    """
    if not (job.raw.get("checkpoints") or {}).get("memory"):
        return {}
    files = [anonymous_file("slipway-rank-%d" % rank) for rank in range(job.processes_per_host)]
    if None in files:
        log("the state is not kept in memory: this kernel has no anonymous files")
        return {}
    return {"SLIPWAY_MEMORY": ":".join("/proc/%d/fd/%d" % (os.getpid(), file) for file in files)}
