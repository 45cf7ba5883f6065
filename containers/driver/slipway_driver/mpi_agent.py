"""Replaces ssh for mpirun: `python -m slipway_driver.mpi_agent HOST WORDS...` lets the driver of HOST run the command WORDS."""

from __future__ import annotations

import os
import sys
from typing import List, Mapping

from slipway_driver.exit_codes import shell_code
from slipway_driver.hosts import read_hosts_file
from slipway_driver.mpi_host import secret_of, worker_port
from slipway_driver.paths import paths_of
from slipway_driver.peer_channel import PeerChannel, PeerLost, connect_patiently
from slipway_driver.rank import die_with_parent


def reach(host: str, environ: Mapping[str, str]) -> PeerChannel:
    """A channel to the driver of `host`. Raises PeerLost if it does not respond."""
    address = read_hosts_file(paths_of(environ).config / "hosts").get(host, host)
    return connect_patiently(address, worker_port(environ), "mpirun", secret_of(environ))


def main(arguments: List[str]) -> int:
    """Runs `arguments[1:]` on the host `arguments[0]` and returns its exit code there; 1 if the connection is lost."""
    die_with_parent()
    host, words = arguments[0], arguments[1:]
    try:
        channel = reach(host, os.environ)
        channel.send({"run": words})
        code = int(channel.receive()["code"])
    except (PeerLost, ValueError, KeyError) as error:
        print("mpi: lost %s: %s" % (host, error), file=sys.stderr, flush=True)
        return 1
    return shell_code(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
