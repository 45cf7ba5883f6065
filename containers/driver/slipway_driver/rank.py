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
from typing import Any, Callable, Dict, List, Mapping, Sequence

from slipway_driver.error_collector import ErrorCollector
from slipway_driver.exit_codes import shell_code
from slipway_driver.output_lines import LINE
from slipway_driver.rank_output import RankOutput, Writer
from slipway_driver.rank_session import kill_session, members, stop_session

STOPPING = "stopping"
#: Begins a line with the name and content of a file of the state folder that could not be written. Programs cannot print it.
RECORD = "\x02"
RECORD_LINES, RECORD_CHARACTERS = 10, 200
TEARDOWN_SECONDS = 5.0
POLL_SECONDS = 0.1
#: Programs that a script has started may take this long to end after it.
LEFT_SECONDS = 1.0
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Set by the host's part of an MPI start: this host's state folder, and the file from which its log is read.
STATE_VARIABLE, LOG_VARIABLE = "SLIPWAY_STATE_FOLDER", "SLIPWAY_LOG"
FOLDER_VARIABLE = "SLIPWAY_FOLDER"


def rank_variables(environ: Mapping[str, str]) -> Dict[str, str]:
    """RANK and related variables as torchrun sets them, if only the variables of Open MPI are set."""
    own = {"RANK": "RANK", "WORLD_SIZE": "SIZE", "LOCAL_RANK": "LOCAL_RANK", "LOCAL_WORLD_SIZE": "LOCAL_SIZE"}
    theirs = {name: environ.get("OMPI_COMM_WORLD_" + word) for name, word in own.items()}
    return {name: value for name, value in theirs.items() if value is not None and name not in environ}


def prctl(option: int, value: int) -> None:
    """Sets an attribute of this process, where the platform has it."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with_parent() -> None:
    """Lets the kernel kill this process when its parent dies: a parent that receives SIGKILL cannot end its children itself."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def begin_rank() -> None:
    """Runs in a rank's process before its script: the rank ends with its wrapper, and neither it nor the programs that it starts leave core
    dumps, because writing the host memory of a rank would take minutes. A script may raise the limit again.

    If the host pipes core dumps to a program, Linux ignores a limit of 0, and only a limit of exactly 1 prevents the dump (core(5);
    do_coredump in fs/coredump.c, 2026-11-26). A limit of 1 byte is also too small for a file. Where the hard limit is 0, the filter of the
    dumped memory is cleared instead, which leaves a dump of some kilobytes. PR_SET_DUMPABLE would not survive the start of the script.
    """
    die_with_parent()
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard != 0:
        resource.setrlimit(resource.RLIMIT_CORE, (1, hard))
        return
    with contextlib.suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0", encoding="ascii")


def write_state(state: Path, name: str, content: Any) -> None:
    """Tells the driver the session that it signals for a rank (`rank-<n>.pid`), or the rank's outcome (`rank-<n>.json`): in a file of the
    state folder, atomically because the driver may read it at any time. On a full disk, it goes through the output instead."""
    temporary = state / (name + ".tmp")
    try:
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.rename(state / name)
    except OSError:
        if isinstance(content, dict):  # What the driver needs of a record, in one write to a pipe.
            tail = [line[:RECORD_CHARACTERS] for line in content.get("tail", [])[-RECORD_LINES:]]
            content = {**content, "summary": content.get("summary", "")[:RECORD_CHARACTERS], "tail": tail}
        with contextlib.suppress(OSError):
            os.write(1, (RECORD + json.dumps([name, content]) + LINE).encode())


def _stop_on_teardown(child: Any, state: Path, keep: Callable[[], None]) -> threading.Event:
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
        stop_session(child.pid)
        timer = threading.Timer(TEARDOWN_SECONDS, kill_session, (child.pid,))
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGTERM, on_sigterm)
    return torn_down


class RankErrors:
    """The errors of one rank: from stderr, otherwise (`2>&1`) from a traceback on stdout."""

    def __init__(self) -> None:
        self.stderr, self.stdout = ErrorCollector(), ErrorCollector(bare=False)

    @property
    def best(self) -> ErrorCollector:
        """The collector whose error is reported: stderr, unless only stdout has an error, or any output."""
        if self.stderr.summary or not (self.stdout.summary or not self.stderr.tail):
            return self.stderr
        return self.stdout

    def facts(self) -> Dict[str, Any]:
        """The fields of the record. `unhandled`: the error with which the rank ended, also with code 0; `raised`: the newest traceback."""
        raised, raised_at = max(self.stderr.raised, self.stdout.raised, key=lambda found: found[1])
        return {
            "errorAt": self.best.at,
            "summary": self.best.summary,
            "unhandled": self.stderr.unhandled or self.stdout.unhandled,
            "raised": raised,
            "raisedAt": raised_at,
            "killed": self.stderr.killed or self.stdout.killed,
            "tail": self.best.tail,
        }


def _wait(child: Any, is_stopped: Callable[[], bool]) -> int:
    """Waits for the script, and after a stop also for the programs that it has started. Returns the exit code."""
    while hasattr(os, "waitid"):
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if ended is None or ended.si_pid == child.pid:
            break
        os.waitpid(ended.si_pid, 0)  # Orphans become children of this process.
    code = child.wait()
    while (code == -signal.SIGTERM or is_stopped()) and members(child.pid):
        time.sleep(POLL_SECONDS)
    codes = _reap()
    # A shell dies of the signal, after which the program behind it saves and returns its own exit code.
    return code if code != -signal.SIGTERM or not codes or code in codes else max(codes)


def _reap() -> List[int]:
    """Exit codes of the orphans that have ended."""
    codes: List[int] = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            codes.append(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    return codes


def _left(session: int) -> str:
    """The command of a program that the script has started and that still runs a moment after the script's end; "" if there is none."""
    end = time.monotonic() + LEFT_SECONDS
    while members(session) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    for pid in sorted(members(session)):
        with contextlib.suppress(OSError):
            words = Path("/proc/%d/cmdline" % pid).read_bytes().split(b"\0")
            return b" ".join(words).decode("utf-8", "replace").strip()[:RECORD_CHARACTERS]
    return ""


def _start(command: Sequence[str], environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Starts a rank in a session of its own."""
    return subprocess.Popen(
        list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=begin_rank,
        env=dict(environ), cwd=environ.get(FOLDER_VARIABLE),
    )  # fmt: skip


#: Starts a rank from its command and variables, and returns its process.
Start = Callable[[Sequence[str], Mapping[str, str]], Any]


def run(state: Path, command: List[str], environ: Mapping[str, str], start: Start = _start) -> int:
    """Runs the command as one rank and returns the exit code for the launcher."""
    die_with_parent()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if LOG_VARIABLE in environ:
        # Otherwise mpirun would collect the output of all ranks on the first host.
        with contextlib.suppress(OSError):
            os.dup2(os.open(environ[LOG_VARIABLE], os.O_WRONLY | os.O_CLOEXEC), 1)
    environ = {**environ, **rank_variables(environ)}
    is_rank = "RANK" in environ and "LOCAL_RANK" in environ
    rank, local_rank = (int(environ["RANK"]), int(environ["LOCAL_RANK"])) if is_rank else (None, 0)
    if (state / STOPPING).exists():
        return 0
    child = start(command, environ)
    write_state(state, "rank-%d.pid" % local_rank, child.pid)
    errors, writer = RankErrors(), Writer()

    def keep(code: int, torn_down: bool, left: str = "") -> None:
        # `endedAt` is by the monotonic clock, which all processes of a host share.
        record = {**errors.facts(), "rank": rank or 0, "localRank": local_rank, "code": code, "endedAt": time.monotonic(), "left": left,
                  "stopped": (state / STOPPING).exists(), "tornDown": torn_down}  # fmt: skip
        write_state(state, "rank-%d.json" % local_rank, {**record, **({"tail": []} if code == 0 else {})})

    torn_down = _stop_on_teardown(child, state, lambda: keep(1 if errors.best.summary else -signal.SIGTERM, True))
    if (state / STOPPING).exists():
        # The driver began to stop the job after the check above and before the pid file was written, so it has not signaled this rank.
        stop_session(child.pid)
    outputs: List[RankOutput] = []
    for source, collector in ((child.stdout, errors.stdout), (child.stderr, errors.stderr)):
        if source:
            outputs.append(RankOutput(source, rank, collector, writer, outputs[-1] if outputs else None))
    for output in outputs:
        output.start()
    code = _wait(child, lambda: torn_down.is_set() or (state / STOPPING).exists())
    for output in outputs:
        output.finish()
    if code == 0 and torn_down.is_set():
        code = -signal.SIGTERM  # The rank exited normally on the launcher's SIGTERM, but its work was not complete.
    writer.close()
    stopping = (state / STOPPING).exists()
    keep(code, torn_down.is_set(), "" if code != 0 or stopping else _left(child.pid))
    return 0 if stopping else shell_code(code)


if __name__ == "__main__":
    folder = os.environ[STATE_VARIABLE] if sys.argv[1] == "-" else sys.argv[1]
    sys.exit(run(Path(folder), sys.argv[2:], os.environ))
