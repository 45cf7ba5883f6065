"""Names of hosts to addresses: the sandbox's hosts file first, then DNS with patience.

DNS names of a job's instances may not resolve yet when the first container starts; the service's own toolkit waits up to
15 minutes as well.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Callable, Dict, Mapping, Sequence

from slipway_driver.exit_codes import TRY_AGAIN, DriverError

DNS_WAIT_SECONDS = 15 * 60.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 20.0


def parse_hosts_file(text: str) -> Dict[str, str]:
    """Lines `address name [name...]` as {name: address}; `#` starts a comment."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        for name in words[1:]:
            found.setdefault(name, words[0])
    return found


def read_hosts_file(path: Path) -> Dict[str, str]:
    """The sandbox's hosts file; empty on SageMaker, where there is none."""
    try:
        return parse_hosts_file(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def wait_for_hosts(
    hosts: Sequence[str],
    known: Mapping[str, str],
    resolve: Callable[[str], str] = socket.gethostbyname,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    limit_seconds: float = DNS_WAIT_SECONDS,
) -> Dict[str, str]:
    """{host: address} once every host resolves. Raises DriverError (75) naming those that did not in time."""
    addresses = {host: known[host] for host in hosts if host in known}
    deadline = clock() + limit_seconds
    delay = FIRST_DELAY_SECONDS
    while True:
        for host in hosts:
            # A resolver that is down takes seconds for each name: hundreds of them must not stretch the limit.
            if host not in addresses and clock() <= deadline:
                try:
                    addresses[host] = resolve(host)
                except OSError:
                    continue
        missing = [host for host in hosts if host not in addresses]
        if not missing:
            return addresses
        if clock() + delay > deadline:
            raise DriverError(
                TRY_AGAIN,
                "hosts must resolve within %d s; no address for %s" % (limit_seconds, ", ".join(missing[:8])),
            )
        sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY_SECONDS)


def own_address(host: str, addresses: Mapping[str, str], known: Mapping[str, str]) -> str:
    """What this host listens on and calls from; "" = on whatever the system chooses.

    A runtime may write the container's own name into /etc/hosts as 127.0.0.1, which other hosts cannot reach. In the sandbox's file
    such addresses are meant.
    """
    address = addresses.get(host, "")
    return "" if address.startswith("127.") and host not in known else address
