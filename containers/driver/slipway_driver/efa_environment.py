"""EFA and NCCL variables, by instance type and by the devices that the host has.

The image sets FI_PROVIDER=efa and NCCL_PROTO=simple. They are unset in these cases, unless the user has set them:
- FI_PROVIDER=efa without an EFA device makes libfabric fail, and with older plugins the whole job (aws-ofi-nccl issue 174);
- NCCL_PROTO=simple on P5 and later only disables the LL and LL128 protocols (NVIDIA discourages setting it at all);
- on a single host there is no traffic between hosts, so neither variable has an effect.
FI_EFA_USE_DEVICE_RDMA is never set: libfabric 1.18 and later selects it automatically, and the value 1 aborts if the device does not
support RDMA.
Sources: aws-ofi-nccl doc/efa-env-var.md v1.21.1, libfabric man fi_efa.7, NCCL env.rst 2.30; retrieved 2026-11-20.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from slipway_driver.cluster import Cluster
from slipway_driver.tables import EFA_INSTANCES

#: The variables that AWS published in 2023 for p4d (EC2 user guide, "Get started with EFA and NCCL"), verbatim.
GUIDE_2023 = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "NCCL_PROTO": "simple"}


class Change(NamedTuple):
    """One variable that the driver sets (`value`) or unsets (`value` None), and the reason."""

    name: str
    value: "str | None"
    reason: str


def efa_devices(root: Path = Path("/dev/infiniband"), classes: Path = Path("/sys/class/infiniband_verbs")) -> int:
    """Number of EFA devices in the container. It does not follow from the instance type: a container may have none.

    P6-B200 hosts also list RDMA devices of their NVLink switches, which are not network devices. If /sys names the driver of a device, the
    device counts only if that driver is `efa` (https://github.com/aws/sagemaker-hyperpod-cli/pull/282, 2026-11-22).
    """
    try:
        found = [entry for entry in os.listdir(str(root)) if entry.startswith("uverbs")]
    except OSError:
        return 0
    return len([name for name in found if _driver_of(classes / name) in ("efa", None)])


def _driver_of(device: Path) -> "str | None":
    """The kernel driver of a device in /sys; None if it is not visible in the container."""
    try:
        return os.path.basename(os.readlink(str(device / "device" / "driver")))
    except OSError:
        return None


def interface_exists(name: str, root: Path = Path("/sys/class/net")) -> bool:
    """Whether this host has a network interface with that name; False for an empty name."""
    return bool(name) and (root / name).exists()


def _efa_changes(cluster: Cluster, devices: int, baked: Mapping[str, str]) -> List[Change]:
    single = len(cluster.training_hosts) == 1
    known = EFA_INSTANCES.get(cluster.instance_type)
    changes: List[Change] = []
    if "FI_PROVIDER" in baked and (single or devices == 0):
        why = "one host: no traffic between hosts" if single else "no EFA device in the container: libfabric would find no provider"
        changes.append(Change("FI_PROVIDER", None, why))
    if "FI_PROVIDER" not in baked and not single and devices > 0:
        changes.append(Change("FI_PROVIDER", "efa", "%d EFA device(s): prevents the silent use of another provider" % devices))
    if "NCCL_PROTO" in baked:
        if single:
            changes.append(Change("NCCL_PROTO", None, "one host: it would only slow down NVLink"))
        elif known is not None and known.proto_simple_harms:
            why = "%s: it would disable LL and LL128; the plugin selects simple where required" % cluster.instance_type
            changes.append(Change("NCCL_PROTO", None, why))
    for name in ("FI_EFA_USE_DEVICE_RDMA", "RDMAV_FORK_SAFE", "FI_EFA_FORK_SAFE"):
        if name in baked:
            changes.append(Change(name, None, "selected automatically since libfabric 1.18"))
    return changes


def _network_changes(cluster: Cluster, has_interface: bool, baked: Mapping[str, str]) -> List[Change]:
    changes: List[Change] = []
    if has_interface:
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
            changes.append(Change(name, cluster.network_interface, "network_interface_name of resourceconfig.json"))
    multi = len(cluster.training_hosts) > 1
    if multi and "NCCL_DEBUG" not in baked:
        changes.append(Change("NCCL_DEBUG", "INFO", "the EFA verdict reads NCCL's own lines"))
    if multi and "NCCL_DEBUG_SUBSYS" not in baked:
        changes.append(Change("NCCL_DEBUG_SUBSYS", "INIT,NET,ENV", "the EFA verdict reads NCCL's own lines"))
    return changes


def efa_changes(
    cluster: Cluster,
    devices: int,
    has_interface: bool,
    baked: Mapping[str, str],
    pinned: Sequence[str],
    variables: str,
) -> Tuple[Change, ...]:
    """All changes to the inherited environment; a variable that the user has set is never changed."""
    changes: List[Change] = []
    if variables == "guide-2023":
        changes += [Change(name, value, "efaVariables: guide-2023") for name, value in GUIDE_2023.items()]
    else:
        changes += _efa_changes(cluster, devices, baked)
    changes += _network_changes(cluster, has_interface, baked)
    return tuple(change for change in changes if change.name not in pinned)


def apply_changes(environ: Dict[str, str], changes: Sequence[Change]) -> List[str]:
    """Applies the changes to `environ` and returns one log line for each variable that was unset."""
    lines: List[str] = []
    for change in changes:
        if change.value is None:
            lines.append("environment: %s=%s unset (%s)" % (change.name, environ.pop(change.name, ""), change.reason))
        else:
            environ[change.name] = change.value
    return lines
