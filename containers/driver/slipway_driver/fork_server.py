"""Starts the ranks of the built-in trainer by fork: `python -m slipway_driver.fork_server DESCRIPTOR`.

The process imports PyTorch and the trainer once, while the host is being prepared. Each start of the ranks is then a fork, which saves the
imports of torchrun and of every rank. It uses neither a GPU nor threads, which would not survive a fork.

The driver sends an order through the socket DESCRIPTOR with the pipe for the output, and receives the process id of the launcher and then
its exit code, as for torchrun: 0, or 1 if a rank has failed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Dict, List, Mapping, NoReturn, Optional, Sequence

from slipway_driver.rank import Start, begin_rank, die_with_parent
from slipway_driver.rank import run as run_rank

#: After SIGTERM to the remaining ranks, as with torchrun.
KILL_SECONDS = 30.0


class ForkedRank:
    """The process of a rank, with the attributes of subprocess.Popen that its wrapper uses."""

    def __init__(self, pid: int, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr

    def wait(self) -> int:
        """Waits for the end; the exit code, or the negative number of a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def start_forked(module: str) -> Start:
    """What starts a rank from its command `python -u -m module arguments...`, in place of subprocess.Popen."""

    def start(command: Sequence[str], environ: Mapping[str, str]) -> ForkedRank:
        words = list(command[command.index(module) :])
        out, error = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            begin_rank()
            os.dup2(out[1], 1)
            os.dup2(error[1], 2)
            for descriptor in (*out, *error):
                os.close(descriptor)
            os.environ.update(environ)
            _run_module(module, words)
        os.close(out[1])
        os.close(error[1])
        return ForkedRank(pid, os.fdopen(out[0], "rb", 0), os.fdopen(error[0], "rb", 0))

    return start


def _run_module(module: str, words: List[str]) -> NoReturn:
    """Runs `python -m module` in this process."""
    sys.argv = words
    code = 1
    try:
        code = importlib.import_module(module + ".__main__").main(words[1:])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def rank_variables(order: Mapping[str, Any], local_rank: int) -> Dict[str, str]:
    """The variables that torchrun sets for a rank. The first rank creates the store of the rendezvous."""
    processes, host, hosts = order["processes"], order["host"], order["hosts"]
    rank, ranks = host * processes + local_rank, hosts * processes
    named = {"RANK": rank, "LOCAL_RANK": local_rank, "GROUP_RANK": host, "ROLE_RANK": rank, "WORLD_SIZE": ranks,
             "LOCAL_WORLD_SIZE": processes, "GROUP_WORLD_SIZE": hosts, "ROLE_WORLD_SIZE": ranks}  # fmt: skip
    defaults = {"OMP_NUM_THREADS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    return {**defaults, **order["environ"], **{name: str(value) for name, value in named.items()}}


def launch(order: Mapping[str, Any], module: str) -> int:
    """Runs the ranks of this host, each under its wrapper, and ends all of them when one has failed."""
    os.chdir(order["folder"])
    pids: List[int] = []
    for local_rank in range(order["processes"]):
        pid = os.fork()
        if pid == 0:
            os.environ.clear()
            os.environ.update(rank_variables(order, local_rank))
            os._exit(run_rank(Path(order["state"]), order["command"], dict(os.environ), start_forked(module)))
        pids.append(pid)
    failed = False
    while pids:
        pid, status = os.wait()
        pids.remove(pid)
        if status != 0 and not failed:
            failed = True
            _end(list(pids))
    return 1 if failed else 0


def _end(pids: Sequence[int]) -> None:
    """Sends SIGTERM to the wrappers, and SIGKILL later."""

    def send(number: int) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    send(signal.SIGTERM)
    timer = threading.Timer(KILL_SECONDS, send, (signal.SIGKILL,))
    timer.daemon = True
    timer.start()


def serve(control: socket.socket, module: str) -> None:
    """Carries out one order after the other until the driver closes the socket. An order is a line, after a byte that brings the pipe."""
    lines = control.makefile("rb")
    while True:
        byte, descriptors, _flags, _address = socket.recv_fds(control, 1, 1)
        if not byte:
            return
        order = json.loads(lines.readline())
        pid = os.fork()
        if pid == 0:
            die_with_parent()
            os.setsid()
            control.close()
            os.dup2(descriptors[0], 1)
            os.dup2(descriptors[0], 2)
            os.close(descriptors[0])
            os._exit(launch(order, module))
        os.close(descriptors[0])
        control.sendall(b"%d\n" % pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.sendall(b"%d\n" % code)


def preload(module: str) -> bool:
    """Imports what the ranks need. Returns whether ranks can be forked after that. The ranks try a failed import again and report it."""
    with suppress(Exception):
        importlib.import_module(module + ".preload")
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        # A forked process cannot use a GPU any more if its parent has used one.
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        os._exit(bool(cuda is not None and cuda._is_in_bad_fork()))
    return os.waitpid(pid, 0)[1] == 0


def main(words: Optional[Sequence[str]] = None) -> None:
    """`DESCRIPTOR MODULE`."""
    descriptor, module = list(sys.argv[1:] if words is None else words)
    control = socket.socket(fileno=int(descriptor))
    if preload(module):
        serve(control, module)


if __name__ == "__main__":
    main()
