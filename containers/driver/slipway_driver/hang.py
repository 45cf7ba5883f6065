"""Collects evidence of a hang before the ranks are killed: the stack of every thread of each local rank."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Sequence

from slipway_driver.dumps import ask_for_traces
from slipway_driver.rank_session import is_running, receivers, send

#: Time for the ranks to print their stacks; one that hangs in the kernel never does.
DUMP_SECONDS, POLL_SECONDS, DRAIN_SECONDS = 5.0, 0.1, 1.0
PY_SPY_SECONDS = 20.0


def dump_ranks(sessions: Sequence[int], dumps: Path, log: Callable[[str], None]) -> None:
    """Writes NCCL's flight recorder traces to folder `dumps`, and the stacks of every local rank to the log: with py-spy if the image has
    it (its output is also written to `dumps`), then with faulthandler through SIGABRT. `sessions`: those of the local ranks, whose
    programs may run behind a shell.

    SIGABRT makes a rank with PYTHONFAULTHANDLER=1 print its stacks and exit. SIGCONT follows because a stopped process would not handle the
    signal.
    """
    pids = [pid for session in sessions for pid in receivers(session) or [session]]
    traces = ask_for_traces(dumps)
    if traces:
        log("%d rank(s) wrote NCCL's flight recorder" % traces)
    py_spy = shutil.which("py-spy")
    if py_spy and pids:
        from concurrent.futures import ThreadPoolExecutor  # It takes longer to import than the driver.

        # All GPUs of the job wait for this.
        with ThreadPoolExecutor(len(pids)) as pool:
            list(pool.map(lambda pid: _py_spy(py_spy, pid, dumps, log), pids))
    for pid in pids:
        send(pid, signal.SIGABRT)
        send(pid, signal.SIGCONT)
    deadline = time.monotonic() + DUMP_SECONDS
    while time.monotonic() < deadline and any(is_running(pid) for pid in pids):
        time.sleep(POLL_SECONDS)
    # What they have printed still passes through pipes, whose readers end with them.
    time.sleep(DRAIN_SECONDS)


def _py_spy(program: str, pid: int, dumps: Path, log: Callable[[str], None]) -> None:
    try:
        done = subprocess.run(
            [program, "dump", "--pid", str(pid)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PY_SPY_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log("py-spy could not read process %d: %s" % (pid, error))
        return
    with contextlib.suppress(OSError):
        (dumps / ("py-spy-%d.txt" % pid)).write_bytes(done.stdout)
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        log("py-spy %d: %s" % (pid, line))
