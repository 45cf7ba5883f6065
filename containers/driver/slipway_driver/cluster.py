"""The hosts of the job: their order and which of them train, from resourceconfig.json, and their addresses.

Names are resolved with the sandbox's hosts file, then with DNS and retries: the names of a job's instances may not resolve yet when the
first container starts. The service's own toolkit also waits up to 15 minutes.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from slipway_driver.exit_codes import TRY_AGAIN, DriverError
from slipway_driver.job import read_object
from slipway_driver.log import log

HOMOGENEOUS = "homogeneousCluster"
DNS_WAIT_SECONDS = 15 * 60.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 20.0
LOG_SECONDS = 60.0
NAMED_HOSTS = 8


@dataclass(frozen=True)
class Cluster:
    """All hosts of the job, and the subset that takes part in distributed training."""

    current_host: str
    instance_type: str
    current_group: str
    hosts: Tuple[str, ...]
    #: In rank order.
    training_hosts: Tuple[str, ...]
    #: The host that had rank 0 at the start of the job: its driver coordinates the others until the end.
    first_host: str
    #: Whether the cluster has several instance groups.
    heterogeneous: bool
    network_interface: str
    raw: Mapping[str, Any]
    #: Spare hosts, and hosts that were replaced because their hardware failed.
    idle_hosts: Tuple[str, ...] = ()

    @property
    def takes_part(self) -> bool:
        """Whether this host is one of the training hosts."""
        return self.current_host in self.training_hosts

    @property
    def rank(self) -> int:
        """Index of this host among the training hosts; 0 is the master."""
        return self.training_hosts.index(self.current_host) if self.takes_part else 0

    @property
    def master(self) -> str:
        """Name of the host of rank 0."""
        return self.training_hosts[0]

    @property
    def has_rank_0(self) -> bool:
        """Whether this is the host of rank 0."""
        return self.current_host == self.master

    @property
    def is_first(self) -> bool:
        """Whether this is the first host, which has rank 0 until a spare host replaces it."""
        return self.current_host == self.first_host

    @property
    def idle(self) -> bool:
        """Whether this host is a spare host or was replaced by one."""
        return self.current_host in self.idle_hosts

    def with_training(self, hosts: Sequence[str]) -> Cluster:
        """Returns the same cluster with another list of training hosts; all other hosts become idle."""
        idle = tuple(host for host in self.hosts if host not in hosts)
        return replace(self, training_hosts=tuple(hosts), idle_hosts=idle)

    def as_scripts_see_it(self) -> Cluster:
        """Returns the cluster without its idle hosts, so that a script that counts hosts finds only the training hosts, in rank order."""
        if not self.idle_hosts or not self.takes_part:
            return self
        groups = [dict(group, hosts=list(self.training_hosts)) for group in self.raw.get("instance_groups") or []]
        raw = dict(self.raw, hosts=list(self.training_hosts), **({"instance_groups": groups} if groups else {}))
        return replace(self, hosts=self.training_hosts, idle_hosts=(), raw=raw)


def ranked(hosts: Sequence[str], topology: Any) -> Tuple[str, ...]:
    """Returns the hosts in rank order: sorted as strings, like the service does (algo-1, algo-10, algo-2), so that every host derives the
    same ranks, with hosts of the same UltraServer next to each other because NVLink connects them.

    `topology` is the field of resourceconfig.json with hostName and capacityUnitId for each host of a job on UltraServers; absent or empty
    for other jobs (https://github.com/aws/sagemaker-training-toolkit, environment.py). A host that is missing from it counts as an
    UltraServer of its own.
    """
    entries = [entry for entry in topology if isinstance(entry, dict)] if isinstance(topology, list) else []
    unit_of = {str(entry.get("hostName")): str(entry["capacityUnitId"]) for entry in entries if entry.get("capacityUnitId")}
    in_order = sorted(hosts)
    first: Dict[str, int] = {}
    for number, host in enumerate(in_order):
        first.setdefault(unit_of.get(host, host), number)
    return tuple(sorted(in_order, key=lambda host: first[unit_of.get(host, host)]))


def parse_cluster(raw: Mapping[str, Any], training_groups: Sequence[str], spares: int = 0) -> Cluster:
    """Builds the cluster from resourceconfig.json. If `training_groups` is empty, every host except the last `spares` takes part.

    Raises DriverError (77) if a group does not exist, the current host is not among the hosts, or no host is left for training.
    """
    hosts = tuple(sorted(raw.get("hosts") or []))
    current = str(raw.get("current_host", ""))
    if current not in hosts:
        raise DriverError("resourceconfig.json current_host: must be one of hosts, got %r" % current)
    listed: List[Dict[str, Any]] = raw.get("instance_groups") or [{"instance_group_name": HOMOGENEOUS, "hosts": hosts}]
    groups = {str(group["instance_group_name"]): group.get("hosts", []) for group in listed}
    unknown = [name for name in training_groups if name not in groups]
    if unknown:
        raise DriverError("job.json trainingGroups: must name groups of the job (%s), got %s" % (", ".join(groups), ", ".join(unknown)))
    candidates = tuple(sorted(host for name in training_groups or groups for host in groups[name]))
    if spares and (len(groups) > 1 or spares >= len(candidates)):
        why = "job.json spareInstances: must leave a training host in a single group, got %d of %d hosts" % (spares, len(candidates))
        raise DriverError(why)
    training = ranked(candidates[: len(candidates) - spares], raw.get("topology"))
    return Cluster(
        current_host=current,
        instance_type=str(raw.get("current_instance_type", "")),
        current_group=str(raw.get("current_group_name") or HOMOGENEOUS),
        hosts=hosts,
        training_hosts=training,
        first_host=training[0],
        heterogeneous=len(groups) > 1,
        network_interface=str(raw.get("network_interface_name") or ""),
        raw=raw,
        idle_hosts=candidates[len(training) :],
    )


def read_cluster(path: Path, training_groups: Sequence[str], spares: int = 0) -> Cluster:
    """Reads the cluster from a resourceconfig.json file. Raises DriverError (77) if the file is missing or invalid."""
    return parse_cluster(read_object(path), training_groups, spares)


def read_hosts_file(path: Path) -> Dict[str, str]:
    """{name: address} from the sandbox's hosts file, whose lines are `address name [name...]`; `#` starts a comment. Empty on SageMaker,
    where the file does not exist."""
    found: Dict[str, str] = {}
    with suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split("#", 1)[0].split()
            for name in words[1:]:
                found.setdefault(name, words[0])
    return found


def wait_for_hosts(hosts: Sequence[str], known: Mapping[str, str]) -> Dict[str, str]:
    """Returns {host: address} once every host resolves. Raises DriverError (75) with the unresolved names after the time limit."""
    addresses = {host: known[host] for host in hosts if host in known}
    deadline = time.monotonic() + DNS_WAIT_SECONDS
    delay, log_at = FIRST_DELAY_SECONDS, time.monotonic()
    while True:
        for host in hosts:
            # With an unavailable resolver each name takes seconds: many names must not extend the time limit.
            if host not in addresses and time.monotonic() <= deadline:
                with suppress(OSError):
                    addresses[host] = socket.gethostbyname(host)
        missing = [host for host in hosts if host not in addresses]
        if not missing:
            return addresses
        named = ", ".join(missing[:NAMED_HOSTS])
        if time.monotonic() + delay > deadline:
            raise DriverError("hosts must resolve within %d s; no address for %s" % (DNS_WAIT_SECONDS, named), TRY_AGAIN)
        if time.monotonic() >= log_at:
            log_at = time.monotonic() + LOG_SECONDS
            log("waiting for %d host name(s) to resolve: %s" % (len(missing), named))
        time.sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY_SECONDS)


def own_address(host: str, addresses: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The address on which this host listens and from which it connects; "" leaves the choice to the system.

    A runtime may map the container's own name to 127.0.0.1 in /etc/hosts, which other hosts cannot reach. Such addresses in the sandbox's
    hosts file are intended.
    """
    address = addresses.get(host, "")
    return "" if address.startswith("127.") and host not in known else address
