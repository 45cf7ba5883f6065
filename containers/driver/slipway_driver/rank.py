"""The wrapper under which each rank runs: `python -m slipway_driver.rank STATE_FOLDER COMMAND...`.

A launcher such as torchrun reports every failure as exit code 1, mixes the output of the ranks, and kills them 30 seconds after SIGTERM.
The wrapper labels each line with its rank and records the rank's outcome (`rank-<n>.json`). While the driver stops the job, it hides the
rank's exit code, so that the launcher does not kill ranks that are saving. STATE_FOLDER `-` stands for SLIPWAY_STATE_FOLDER, because mpirun
passes the same command to every host.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, Mapping, Optional

from slipway_driver.efa_verdict import is_about_network
from slipway_driver.error_collector import ErrorCollector
from slipway_driver.exit_codes import shell_code
from slipway_driver.progress import PREFIX

STOPPING = "stopping"
BURST_LINES = 2000
LINES_PER_SECOND = 50.0
#: Limit for NCCL lines about its network, separate from the limit for other lines so that the verdict does not depend on them.
NETWORK_LINES = 200
#: Longer lines are split, to bound the memory for a line without an end.
LONGEST_LINE = 1 << 20
TEARDOWN_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
#: Set by the host's part of an MPI start: this host's state folder, and the file from which its log is read.
STATE_VARIABLE, LOG_VARIABLE = "SLIPWAY_STATE_FOLDER", "SLIPWAY_LOG"
FOLDER_VARIABLE = "SLIPWAY_FOLDER"
#: Variables in which launchers set a process's global and local rank; the first pair that is set is used.
_RANK_NAMES = (("RANK", "LOCAL_RANK"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"))


def ranks_of(environ: Mapping[str, str]) -> "tuple[Optional[int], int]":
    """(global rank or None, local rank) of this process."""
    for name, local in _RANK_NAMES:
        if name in environ and local in environ:
            return int(environ[name]), int(environ[local])
    return None, 0


def rank_variables(environ: Mapping[str, str]) -> Dict[str, str]:
    """RANK and related variables as torchrun sets them, if only the variables of Open MPI are set."""
    own = {"RANK": "RANK", "WORLD_SIZE": "SIZE", "LOCAL_RANK": "LOCAL_RANK", "LOCAL_WORLD_SIZE": "LOCAL_SIZE"}
    theirs = {name: environ.get("OMPI_COMM_WORLD_" + word) for name, word in own.items()}
    return {name: value for name, value in theirs.items() if value is not None and name not in environ}


def labelled(line: str, rank: Optional[int]) -> str:
    """Prefixes a line with its rank. Progress lines are unchanged because readers expect them at the start of a line."""
    if rank is None or line.startswith(PREFIX):
        return line
    return "[rank %d] %s" % (rank, line)


def die_with_parent() -> None:
    """Lets the kernel kill this process when its parent dies: a parent that receives SIGKILL cannot end its children itself."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (AttributeError, OSError):
        pass


def begin_rank() -> None:
    """Runs in a rank's process before its script: the rank ends with its wrapper, and core dumps are disabled, because writing the rank's
    host memory would take minutes. A script may raise the limit again."""
    die_with_parent()
    disable_core_dumps()


def disable_core_dumps() -> None:
    """Disables the core dumps of this process and of the programs that it starts.

    If the host pipes core dumps to a program, Linux ignores a limit of 0, and only a limit of exactly 1 prevents the dump (core(5);
    do_coredump in fs/coredump.c, 2026-11-26). A limit of 1 byte is also too small for a file. Where the hard limit is 0, the filter of the
    dumped memory is cleared instead, which leaves a dump of some kilobytes. PR_SET_DUMPABLE would not survive the start of the script.
    """
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard != 0:
        resource.setrlimit(resource.RLIMIT_CORE, (1, hard))
        return
    with contextlib.suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0", encoding="ascii")


class LineBudget:
    """Rate limit for the lines of a rank: a burst, then a constant rate. It bounds the size and the cost of the log."""

    def __init__(self, burst: int = BURST_LINES, per_second: float = LINES_PER_SECOND) -> None:
        self._burst, self._per_second = float(burst), per_second
        self._left, self._at = float(burst), 0.0
        self.dropped = 0

    def admit(self, now: float) -> bool:
        """Whether a line may be printed at `now` (seconds); counts it as dropped if not."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1.0:
            self.dropped += 1
            return False
        self._left -= 1.0
        return True

    def take_dropped(self) -> int:
        """Number of lines dropped since the last call."""
        dropped, self.dropped = self.dropped, 0
        return dropped


def _pump(source: "IO[bytes]", rank: Optional[int], errors: ErrorCollector) -> None:
    budget, network = LineBudget(), LineBudget(NETWORK_LINES, 0.0)
    for raw in iter(lambda: source.readline(LONGEST_LINE), b""):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        errors.feed(line, time.time())
        now = time.monotonic()
        if line.startswith(PREFIX) or (is_about_network(line) and network.admit(now)) or budget.admit(now):
            _say_dropped(budget, rank)
            _write_line(line, rank)
    _say_dropped(budget, rank)


def _say_dropped(budget: LineBudget, rank: Optional[int]) -> None:
    dropped = budget.take_dropped()
    if dropped:
        _write_line("(%d lines dropped: more than %d per second)" % (dropped, LINES_PER_SECOND), rank)


def _write_line(line: str, rank: Optional[int]) -> None:
    # One write per line, because several ranks share the pipe and their lines must not be interleaved. If the driver has ended, reading
    # continues, because the rank would block otherwise.
    with contextlib.suppress(OSError):
        os.write(1, (labelled(line, rank) + "\n").encode("utf-8", "replace"))


def write_pid(state: Path, local_rank: int, pid: int) -> None:
    """Writes the process id that the driver signals for this rank."""
    (state / ("rank-%d.pid" % local_rank)).write_text(str(pid), encoding="utf-8")


def write_record(state: Path, local_rank: int, record: Mapping[str, Any]) -> None:
    """Writes the outcome of the rank atomically, because the driver may read the file at any time."""
    temporary = state / ("rank-%d.json.tmp" % local_rank)
    temporary.write_text(json.dumps(record), encoding="utf-8")
    temporary.rename(state / ("rank-%d.json" % local_rank))


def _stop_on_teardown(child: "subprocess.Popen[bytes]", state: Path, keep: Callable[[], None]) -> threading.Event:
    """Installs the handler for SIGTERM. The wrapper receives SIGTERM from the launcher, which ends all ranks after another rank has failed;
    the driver signals the ranks directly.

    The returned event is set after such a signal. `keep` writes the current record, because SIGKILL may follow within a second.
    """
    torn_down = threading.Event()

    def on_sigterm(_number: int, _frame: Any) -> None:
        if (state / STOPPING).exists():
            return
        torn_down.set()
        keep()
        child.terminate()
        timer = threading.Timer(TEARDOWN_SECONDS, child.kill)
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGTERM, on_sigterm)
    return torn_down


def _log_to_this_host(environ: Mapping[str, str]) -> None:
    """Redirects the output to the log of this host. Otherwise mpirun would collect the output of all ranks on the first host."""
    path = environ.get(LOG_VARIABLE)
    if path:
        with contextlib.suppress(OSError):
            opened = os.open(path, os.O_WRONLY)
            os.dup2(opened, 1)
            os.close(opened)


class RankErrors:
    """The errors of one rank: from stderr, otherwise (`2>&1`) from a traceback on stdout."""

    def __init__(self) -> None:
        self.stderr, self.stdout = ErrorCollector(), ErrorCollector(bare=False)

    @property
    def best(self) -> ErrorCollector:
        """The collector whose error is reported: stderr, unless only stdout has an error."""
        return self.stdout if self.stdout.summary and not self.stderr.summary else self.stderr


def _wait_and_pump(child: "subprocess.Popen[bytes]", rank: Optional[int], errors: RankErrors) -> int:
    pumps = [
        threading.Thread(target=_pump, args=(child.stdout, rank, errors.stdout), daemon=True),
        threading.Thread(target=_pump, args=(child.stderr, rank, errors.stderr), daemon=True),
    ]
    for pump in pumps:
        pump.start()
    code = child.wait()
    for pump in pumps:
        pump.join(timeout=2.0)  # A grandchild may keep the pipe open indefinitely.
    return code


def _record(rank: Optional[int], local_rank: int, code: int, errors: ErrorCollector, stopping: bool, torn_down: bool) -> Dict[str, Any]:
    return {
        "rank": rank if rank is not None else 0,
        "localRank": local_rank,
        "code": code,
        "endedAt": time.time(),
        "errorAt": errors.at,
        "summary": errors.summary,
        "tail": errors.tail if code != 0 else [],
        "stopped": stopping,
        "tornDown": torn_down,
    }


def run(state: Path, command: List[str], environ: Mapping[str, str]) -> int:
    """Runs the command as one rank and returns the exit code for the launcher."""
    die_with_parent()
    _log_to_this_host(environ)
    rank, local_rank = ranks_of(environ)
    if (state / STOPPING).exists():
        return 0
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=begin_rank,
        env={**environ, **rank_variables(environ)}, cwd=environ.get(FOLDER_VARIABLE),
    )  # fmt: skip
    write_pid(state, local_rank, child.pid)
    errors = RankErrors()

    def keep(code: int, torn_down: bool) -> None:
        write_record(state, local_rank, _record(rank, local_rank, code, errors.best, (state / STOPPING).exists(), torn_down))

    torn_down = _stop_on_teardown(child, state, lambda: keep(1 if errors.best.summary else -signal.SIGTERM, True))
    if (state / STOPPING).exists():
        # The driver began to stop the job after the check above and before the pid file was written, so it has not signaled this rank.
        child.terminate()
    code = _wait_and_pump(child, rank, errors)
    if code == 0 and torn_down.is_set():
        code = -signal.SIGTERM  # The rank exited normally on the launcher's SIGTERM, but its work was not complete.
    stopping = (state / STOPPING).exists()
    keep(code, torn_down.is_set())
    if stopping:
        return 0
    return shell_code(code)


if __name__ == "__main__":
    folder = os.environ[STATE_VARIABLE] if sys.argv[1] == "-" else sys.argv[1]
    sys.exit(run(Path(folder), sys.argv[2:], os.environ))
