"""Starts the launch command of each start: as a new process, or through the fork server for the built-in trainer. Commands are lists of
arguments, which are never passed through a shell. `launcher.json` in the state folder is the outcome that the ranks' records cannot show.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Union

from slipway_driver.cluster import Cluster
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DriverError
from slipway_driver.log import log
from slipway_driver.rank import die_with_parent, write_state

if TYPE_CHECKING:
    from slipway_driver.attempt import Attempt

#: What the fork server counts as if it has ended: the kernel may have killed it because of memory.
SERVER_LOST = -9
RANK_MODULE = "slipway_driver.rank"
_END = "launcher.json"


def script_command(entry_point: str, builtin_module: Optional[str], arguments: Sequence[str]) -> List[str]:
    """The command for the user's script (a .py or .sh file, or a module) or a built-in module. Raises DriverError (77) otherwise."""
    if entry_point.endswith(".py"):
        return [sys.executable, "-u", entry_point, *arguments]
    if entry_point.endswith(".sh"):
        return ["/bin/bash", os.path.join(".", entry_point), *arguments]
    if builtin_module or re.match(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", entry_point):
        return [sys.executable, "-u", "-m", builtin_module or entry_point, *arguments]
    raise DriverError("code.entryPoint: must be a .py file, a .sh file or a module, got %s" % entry_point)


def rank_command(state_folder: str, script: Sequence[str]) -> List[str]:
    """Runs `script` under the wrapper that keeps the output, exit code and first error of each rank separate."""
    return [sys.executable, "-B", "-u", "-m", RANK_MODULE, state_folder, *script]


def torchrun_command(cluster: Cluster, processes: int, address: str, port: int, command: Sequence[str]) -> List[str]:
    """The torchrun command with a static rendezvous: no elasticity, every host knows its rank.

    `--no-python` is set because each rank runs under the driver's wrapper.
    """
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nnodes=%d" % len(cluster.training_hosts),
        "--nproc-per-node=%d" % processes,
        "--node-rank=%d" % cluster.rank,
        "--rdzv-backend=static",
        "--master-addr=%s" % address,
        "--master-port=%d" % port,
        "--max-restarts=0",
        "--no-python",
        *command,
    ]


def write_launcher_end(state: Path, end: Failure) -> None:
    """Writes the outcome unless one exists: later outcomes are consequences of the first."""
    if not (state / _END).exists():
        write_state(state, _END, end)


def read_launcher_end(state: Path) -> Optional[Failure]:
    """The recorded outcome; None if there is none."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Failure(*json.loads((state / _END).read_text(encoding="utf-8")))
    return None


class Server:
    """The fork server of this host, and the socket to it."""

    def __init__(self, attempt: Attempt) -> None:
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, "-B", "-u", "-m", "slipway_driver.fork_server", str(theirs.fileno()), attempt.job.builtin_module or ""]
        self._process = subprocess.Popen(
            command, env=dict(attempt.environ), cwd=str(attempt.folder), stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=die_with_parent, pass_fds=[theirs.fileno()],
        )  # fmt: skip
        theirs.close()
        self._received = b""

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def send(self, order: Mapping[str, Any], output: int) -> int:
        """Sends an order with the pipe for the output of its ranks; returns the process id of their launcher. Raises OSError."""
        self._received = b""
        socket.send_fds(self._socket, [b"."], [output])
        self._socket.sendall(json.dumps(order).encode() + b"\n")
        pid = self.hear(waits=True)
        if pid is None or pid == SERVER_LOST:
            raise OSError("the process that starts the ranks has ended")
        return pid

    def hear(self, waits: bool) -> Optional[int]:
        """The next number that the server sends; None if there is none yet, SERVER_LOST at the end of the connection."""
        while b"\n" not in self._received:
            if not waits and not select.select([self._socket], [], [], 0)[0]:
                return None
            try:
                data = self._socket.recv(64)
            except OSError:
                data = b""
            if not data:
                return SERVER_LOST
            self._received += data
        number, _, self._received = self._received.partition(b"\n")
        return int(number)

    def close(self) -> None:
        """Ends the process, and with it the ranks."""
        self._process.kill()
        self._process.wait()
        self._socket.close()


class Forked:
    """A launcher that the fork server has started, with the attributes of subprocess.Popen that the supervisor uses."""

    def __init__(self, server: Server, pid: int, stdout: IO[bytes]) -> None:
        self._server, self.pid, self.stdout = server, pid, stdout
        self._code: Optional[int] = None

    def poll(self, waits: bool = False) -> Optional[int]:
        """The exit code; None while the launcher runs."""
        self._code = self._server.hear(waits) if self._code is None else self._code
        return self._code

    def wait(self) -> int:
        """Waits for the exit code."""
        code = self.poll(waits=True)
        assert code is not None
        return code


Launched = Union["subprocess.Popen[bytes]", Forked]


def launched(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> "subprocess.Popen[bytes]":
    """Starts a command in a session of its own that ends with the driver."""
    return subprocess.Popen(
        list(command), env=dict(environ), cwd=str(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=die_with_parent,
    )  # fmt: skip


class Launcher:
    """The launches of one host."""

    def __init__(self, attempt: Attempt) -> None:
        self._server = Server(attempt) if attempt.forked_command is not None else None
        self._compile_cache = attempt.compile_cache

    def start(self, attempt: Attempt, state: Path) -> Launched:
        """Starts the ranks of this host, when the compiled code of earlier attempts is there."""
        if attempt.compile_cache:
            attempt.compile_cache.wait()
        if attempt.forked_command is None:
            return launched(attempt.command_of(state), attempt.environ, attempt.folder)
        if self._server is None or not self._server.runs:
            self._server = Server(attempt)
        cluster = attempt.cluster
        order = {"environ": dict(attempt.environ), "folder": str(attempt.folder), "state": str(state), "command": attempt.forked_command,
                 "processes": attempt.job.processes_per_host, "host": cluster.rank, "hosts": len(cluster.training_hosts)}  # fmt: skip
        ours, theirs = os.pipe()
        try:
            return Forked(self._server, self._server.send(order, theirs), os.fdopen(ours, "rb"))
        except OSError as error:
            log("%s; the ranks are started with torchrun" % error)
            os.close(ours)
            return launched(attempt.command_of(state), attempt.environ, attempt.folder)
        finally:
            os.close(theirs)

    def close(self) -> None:
        """Ends the fork server, and keeps the compiled code."""
        if self._compile_cache:
            self._compile_cache.close()
        if self._server is not None:
            self._server.close()
