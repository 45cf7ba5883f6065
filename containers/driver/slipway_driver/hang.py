"""Evidence of a hang: where each thread of each local rank stands, taken before the ranks are killed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable

from slipway_driver.supervisor import rank_pids, send

DUMP_SECONDS = 5.0
PY_SPY_SECONDS = 20.0


def dump_ranks(state: Path, log: Callable[[str], None]) -> None:
    """Stacks of every local rank into the log: py-spy where the image has it, then faulthandler through SIGABRT.

    SIGABRT makes a rank with PYTHONFAULTHANDLER=1 print its stacks and die, which is what comes next anyway. SIGCONT goes along: a
    rank that was frozen would not get the signal.
    """
    pids = rank_pids(state)
    py_spy = shutil.which("py-spy")
    for pid in pids:
        if py_spy:
            _py_spy(py_spy, pid, log)
    for pid in pids:
        send(pid, signal.SIGABRT)
        send(pid, signal.SIGCONT)
    time.sleep(min(DUMP_SECONDS, 0.5 + 0.5 * len(pids)))


def _py_spy(program: str, pid: int, log: Callable[[str], None]) -> None:
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
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        log("py-spy %d: %s" % (pid, line))
