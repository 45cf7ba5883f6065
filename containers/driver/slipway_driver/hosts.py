"""Resolves host names: first with the sandbox's hosts file, then with DNS and retries.

The DNS names of a job's instances may not resolve yet when the first container starts. The service's own toolkit also waits up to 15
minutes.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, Mapping, Sequence

from slipway_driver.exit_codes import TRY_AGAIN, DriverError

DNS_WAIT_SECONDS = 15 * 60.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 20.0
LOG_SECONDS = 60.0
NAMED_HOSTS = 8


def parse_hosts_file(text: str) -> Dict[str, str]:
    """Parses lines `address name [name...]` into {name: address}; `#` starts a comment."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        for name in words[1:]:
            found.setdefault(name, words[0])
    return found


def read_hosts_file(path: Path) -> Dict[str, str]:
    """The content of the sandbox's hosts file; empty on SageMaker, where the file does not exist."""
    try:
        return parse_hosts_file(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def wait_for_hosts(
    hosts: Sequence[str],
    known: Mapping[str, str],
    log: Callable[[str], None],
    resolve: Callable[[str], str] = socket.gethostbyname,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Dict[str, str]:
    """Returns {host: address} once every host resolves. Raises DriverError (75) with the unresolved names after the time limit."""
    addresses = {host: known[host] for host in hosts if host in known}
    deadline = clock() + DNS_WAIT_SECONDS
    delay, log_at = FIRST_DELAY_SECONDS, clock()
    while True:
        for host in hosts:
            # With an unavailable resolver each name takes seconds: many names must not extend the time limit.
            if host not in addresses and clock() <= deadline:
                with suppress(OSError):
                    addresses[host] = resolve(host)
        missing = [host for host in hosts if host not in addresses]
        if not missing:
            return addresses
        named = ", ".join(missing[:NAMED_HOSTS])
        if clock() + delay > deadline:
            raise DriverError(TRY_AGAIN, "hosts must resolve within %d s; no address for %s" % (DNS_WAIT_SECONDS, named))
        if clock() >= log_at:
            log_at = clock() + LOG_SECONDS
            log("waiting for %d host name(s) to resolve: %s" % (len(missing), named))
        sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY_SECONDS)


def own_address(host: str, addresses: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The address on which this host listens and from which it connects; "" leaves the choice to the system.

    A runtime may map the container's own name to 127.0.0.1 in /etc/hosts, which other hosts cannot reach. Such addresses in the sandbox's
    hosts file are intended.
    """
    address = addresses.get(host, "")
    return "" if address.startswith("127.") and host not in known else address
