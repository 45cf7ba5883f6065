"""The first process of a container. It starts the driver, and starts it again if a signal has ended it.

The end of this process is that of the container, and SageMaker then ends the job on all hosts. The process therefore does nothing that can
fail later: it forks the driver, forwards SIGTERM to it and waits. It owns the memory that must outlive a driver: the copies of the ranks'
state, and the decisions of the first host.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any, Dict, Optional

from slipway_driver.driver_start import DriverStart, anonymous_file, memory_variables
from slipway_driver.exit_codes import DriverError, shell_code
from slipway_driver.job import Job, read_job
from slipway_driver.log import log
from slipway_driver.main import main as run_driver
from slipway_driver.paths import paths_of
from slipway_driver.rank import PR_SET_CHILD_SUBREAPER, die_with_parent, prctl

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
            raise SystemExit(run_driver(DriverStart(number, self._started_at, self._kept)))
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


def main() -> int:
    """Runs the container."""
    return Container().run()
