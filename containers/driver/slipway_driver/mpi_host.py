"""One host's part of an MPI start: `python -m slipway_driver.mpi_host STATE_FOLDER [MPIRUN WORDS...]`.

On the first host it is replaced by mpirun (exec). On every other host it waits for mpirun's agent, which must know the job's secret, starts
Open MPI's daemon in this host's own environment, and ends with it. Ranks write to the log of their own host instead of sending all output
to the first host.

`python -m slipway_driver.mpi_host agent HOST WORDS...` replaces ssh for mpirun: it lets the driver of HOST run the command WORDS.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import List, Mapping

from slipway_driver.cluster import read_hosts_file
from slipway_driver.exit_codes import TRY_AGAIN, shell_code
from slipway_driver.job import read_job
from slipway_driver.log import log
from slipway_driver.paths import paths_of
from slipway_driver.peer_channel import PeerChannel, PeerLost, connect_patiently, serve
from slipway_driver.rank import LOG_VARIABLE, STATE_VARIABLE, die_with_parent
from slipway_driver.rank_session import send_group

#: Follows the port of the rendezvous (MASTER_PORT) and that of the driver protocol (+ 1).
PORT_OFFSET = 2
ORDER_SECONDS = 900.0


def secret_of(environ: Mapping[str, str]) -> str:
    """The job's secret, from the driver's job file."""
    return read_job(Path(environ["SLIPWAY_JOB_FILE"])).restart_secret


def worker_port(environ: Mapping[str, str]) -> int:
    """The port on which a host waits for mpirun's agents. Raises KeyError without MASTER_PORT."""
    return int(environ["MASTER_PORT"]) + PORT_OFFSET


def _end_with(channel: PeerChannel, pid: int) -> None:
    """Ends the daemon when mpirun's agent has ended, because nothing else ends it."""
    with contextlib.suppress(PeerLost, ValueError):
        channel.receive()
    send_group(pid, signal.SIGTERM)


def run_daemon(environ: Mapping[str, str]) -> int:
    """Runs the command of mpirun's agent on this host and returns its exit code."""
    agents: "queue.Queue[PeerChannel]" = queue.Queue()
    with socket.create_server((environ.get("SLIPWAY_BIND_ADDRESS", ""), worker_port(environ))) as listening:
        serve(listening, secret_of(environ), agents.put, log)
        try:
            channel = agents.get(timeout=ORDER_SECONDS)
            words = [str(word) for word in channel.receive()["run"]]
        except (queue.Empty, PeerLost, ValueError, KeyError) as error:
            log("mpi: mpirun did not give an order within %d s: %s" % (ORDER_SECONDS, error))
            return TRY_AGAIN
    # Open MPI writes the command for a remote shell, as it would be passed to ssh.
    daemon = subprocess.Popen(
        ["/bin/sh", "-c", " ".join(words)], env=dict(environ), stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent
    )
    threading.Thread(target=_end_with, args=(channel, daemon.pid), daemon=True).start()
    code = daemon.wait()
    with contextlib.suppress(PeerLost):
        channel.send({"code": code})
    return shell_code(code)


def run_on(host: str, words: List[str], environ: Mapping[str, str]) -> int:
    """Runs `words` on a host and returns the exit code there; 1 if the connection is lost."""
    die_with_parent()
    address = read_hosts_file(paths_of(environ).config / "hosts").get(host, host)
    try:
        channel = connect_patiently(address, worker_port(environ), "mpirun", secret_of(environ))
        channel.send({"run": words})
        return shell_code(int(channel.receive()["code"]))
    except (PeerLost, ValueError, KeyError) as error:
        print("mpi: lost %s: %s" % (host, error), file=sys.stderr, flush=True)
        return 1


def main(arguments: List[str]) -> int:
    """Runs this host's part, or the agent. Returns the exit code."""
    environ = dict(os.environ)
    if arguments[0] == "agent":
        return run_on(arguments[1], arguments[2:], environ)
    environ[STATE_VARIABLE] = arguments[0]
    environ[LOG_VARIABLE] = "/proc/%d/fd/1" % os.getpid()
    if len(arguments) > 1:
        os.execve(arguments[1], arguments[1:], environ)
    return run_daemon(environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
