"""What mpirun uses in place of ssh: `python -m slipway_driver.mpi_agent HOST WORDS...` has HOST's driver run the words."""

from __future__ import annotations

import os
import sys
import time
from typing import List, Mapping

from slipway_driver.hosts import read_hosts_file
from slipway_driver.mpi_host import secret_of, worker_port
from slipway_driver.paths import paths_of
from slipway_driver.peer_channel import PeerChannel, PeerLost, connect
from slipway_driver.rank import die_with_parent

CONNECT_SECONDS = 900.0
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.05, 2.0


def reach(host: str, environ: Mapping[str, str], seconds: float = CONNECT_SECONDS) -> PeerChannel:
    """A channel to the host's driver, which may have started later than this one. Raises PeerLost when it never answers."""
    address = read_hosts_file(paths_of(environ).config / "hosts").get(host, host)
    deadline, delay = time.monotonic() + seconds, FIRST_DELAY_SECONDS
    while True:
        try:
            return connect(address, worker_port(environ), "mpirun", secret_of(environ))
        except (OSError, PeerLost) as error:
            if time.monotonic() + delay > deadline:
                raise PeerLost("%s did not answer within %d s (%s)" % (host, seconds, error))
        time.sleep(delay)
        delay = min(2 * delay, LONGEST_DELAY_SECONDS)


def main(arguments: List[str]) -> int:
    die_with_parent()
    host, words = arguments[0], arguments[1:]
    try:
        channel = reach(host, os.environ)
        channel.send({"run": words})
        code = int(channel.receive()["code"])
    except (PeerLost, ValueError, KeyError) as error:
        print("mpi: lost %s: %s" % (host, error), file=sys.stderr, flush=True)
        return 1
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
