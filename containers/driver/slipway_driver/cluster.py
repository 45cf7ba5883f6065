"""resourceconfig.json: the hosts of the job, their order, and which of them train together."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from slipway_driver.exit_codes import ENVIRONMENT, DriverError

HOMOGENEOUS = "homogeneousCluster"


@dataclass(frozen=True)
class InstanceGroup:
    """A group of the cluster: its name, its instance type and its hosts (`algo-1`, ...) in order."""

    name: str
    instance_type: str
    hosts: Tuple[str, ...]


@dataclass(frozen=True)
class Cluster:
    """All hosts of the job, and those of them that take part in the distributed run."""

    current_host: str
    instance_type: str
    current_group: str
    hosts: Tuple[str, ...]
    #: In the order of their ranks.
    training_hosts: Tuple[str, ...]
    groups: Tuple[InstanceGroup, ...]
    network_interface: str
    raw: Mapping[str, Any]
    #: Hosts that wait until a training host's hardware breaks, or whose own hardware broke.
    idle_hosts: Tuple[str, ...] = ()

    @property
    def takes_part(self) -> bool:
        """Whether this host is one of those that train."""
        return self.current_host in self.training_hosts

    @property
    def rank(self) -> int:
        """Index of this host among those that train together; 0 is the master."""
        return self.training_hosts.index(self.current_host) if self.takes_part else 0

    @property
    def master(self) -> str:
        """Name of the host that rank 0 runs on."""
        return self.training_hosts[0]

    @property
    def idle(self) -> bool:
        """Whether this host is a spare one, or was set aside."""
        return self.current_host in self.idle_hosts

    @property
    def heterogeneous(self) -> bool:
        """Whether the cluster has several instance groups."""
        return len(self.groups) > 1

    def with_training(self, hosts: Sequence[str]) -> Cluster:
        """The same job after a host has taken another's place."""
        idle = tuple(host for host in self.hosts if host not in hosts)
        return replace(self, training_hosts=tuple(hosts), idle_hosts=idle)

    def as_scripts_see_it(self) -> Cluster:
        """Without the idle hosts: a script that counts hosts must find those that train, in the order of their ranks."""
        if not self.idle_hosts or not self.takes_part:
            return self
        groups = [dict(group, hosts=list(self.training_hosts)) for group in self.raw.get("instance_groups") or []]
        raw = dict(self.raw, hosts=list(self.training_hosts), **({"instance_groups": groups} if groups else {}))
        return replace(self, hosts=self.training_hosts, idle_hosts=(), raw=raw)


def string_sorted(hosts: Sequence[str]) -> Tuple[str, ...]:
    """Hosts in the service's own order: algo-1, algo-10, algo-2. Every host must derive the same ranks from it."""
    return tuple(sorted(hosts))


def ranked(hosts: Sequence[str], topology: Any) -> Tuple[str, ...]:
    """Hosts in the order of their ranks: the service's own, but hosts of one UltraServer stand together, because NVLink joins them.

    `topology` is that of resourceconfig.json: hostName and capacityUnitId of each host of a job on UltraServers; else absent or empty
    (https://github.com/aws/sagemaker-training-toolkit, environment.py). A host that it leaves out is an UltraServer of its own.
    """
    entries = [entry for entry in topology if isinstance(entry, dict)] if isinstance(topology, list) else []
    unit_of = {str(entry.get("hostName")): str(entry["capacityUnitId"]) for entry in entries if entry.get("capacityUnitId")}
    in_order = string_sorted(hosts)
    first: Dict[str, int] = {}
    for number, host in enumerate(in_order):
        first.setdefault(unit_of.get(host, host), number)
    return tuple(sorted(in_order, key=lambda host: first[unit_of.get(host, host)]))


def _groups(raw: Mapping[str, Any], hosts: Sequence[str], instance_type: str) -> Tuple[InstanceGroup, ...]:
    listed: List[Dict[str, Any]] = raw.get("instance_groups") or []
    if not listed:
        return (InstanceGroup(HOMOGENEOUS, instance_type, string_sorted(hosts)),)
    return tuple(
        InstanceGroup(
            name=str(group["instance_group_name"]),
            instance_type=str(group.get("instance_type", "")),
            hosts=string_sorted(group.get("hosts", [])),
        )
        for group in listed
    )


def parse_cluster(raw: Mapping[str, Any], training_groups: Sequence[str], spares: int = 0) -> Cluster:
    """The cluster as this host sees it. `training_groups` empty = every host takes part, but for the last `spares`.

    Raises DriverError (77) when a group does not exist, the current host is not among the hosts, or no host is left to train.
    """
    hosts = string_sorted(raw.get("hosts") or [])
    current = str(raw.get("current_host", ""))
    if current not in hosts:
        raise DriverError(ENVIRONMENT, "resourceconfig.json current_host: must be one of hosts, got %r" % current)
    instance_type = str(raw.get("current_instance_type", ""))
    groups = _groups(raw, hosts, instance_type)
    known = [group.name for group in groups]
    unknown = [name for name in training_groups if name not in known]
    if unknown:
        raise DriverError(
            ENVIRONMENT,
            "job.json trainingGroups: must name groups of the job (%s), got %s" % (", ".join(known), ", ".join(unknown)),
        )
    taking_part = [group for group in groups if not training_groups or group.name in training_groups]
    candidates = string_sorted([host for group in taking_part for host in group.hosts])
    if spares and (len(groups) > 1 or spares >= len(candidates)):
        raise DriverError(
            ENVIRONMENT,
            "job.json spareInstances: must leave hosts of one group to train, got %d of %d hosts" % (spares, len(candidates)),
        )
    training = ranked(candidates[: len(candidates) - spares], raw.get("topology"))
    return Cluster(
        current_host=current,
        instance_type=instance_type,
        current_group=str(raw.get("current_group_name") or HOMOGENEOUS),
        hosts=hosts,
        training_hosts=training,
        groups=groups,
        network_interface=str(raw.get("network_interface_name") or ""),
        raw=raw,
        idle_hosts=candidates[len(training) :],
    )


def read_cluster(path: Path, training_groups: Sequence[str], spares: int = 0) -> Cluster:
    """The cluster of a resourceconfig.json. Raises DriverError (77) when the file cannot be used."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DriverError(ENVIRONMENT, "%s: must be readable JSON (%s)" % (path, error))
    return parse_cluster(raw, training_groups, spares)
