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
from typing import Dict, Mapping, Sequence, Tuple

from slipway_driver.cluster import Cluster
from slipway_driver.tables import EFA_INSTANCES

#: The variables that AWS published in 2023 for p4d (EC2 user guide, "Get started with EFA and NCCL"), verbatim.
GUIDE_2023 = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "NCCL_PROTO": "simple"}
NCCL_LINES = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
NO_DEVICE = "no EFA device in the container: libfabric would find no provider"


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


def efa_changes(
    cluster: Cluster, devices: int, has_interface: bool, baked: Mapping[str, str], pinned: Sequence[str], variables: str
) -> Tuple[Dict[str, str], Dict[str, str]]:
    """The variables to set, and those to unset with the reasons. A variable that the user has set is in neither."""
    single, known = len(cluster.training_hosts) == 1, EFA_INSTANCES.get(cluster.instance_type)
    values: Dict[str, str] = {}
    unset: Dict[str, str] = {}
    if variables == "guide-2023":
        values.update(GUIDE_2023)
    else:
        if single or devices == 0:
            unset["FI_PROVIDER"] = "one host: no traffic between hosts" if single else NO_DEVICE
        elif "FI_PROVIDER" not in baked:
            values["FI_PROVIDER"] = "efa"  # Prevents the silent use of another provider.
        if single:
            unset["NCCL_PROTO"] = "one host: it would only slow down NVLink"
        elif known is not None and known.proto_simple_harms:
            unset["NCCL_PROTO"] = "%s: it would disable LL and LL128; the plugin selects simple where required" % cluster.instance_type
        for name in ("FI_EFA_USE_DEVICE_RDMA", "RDMAV_FORK_SAFE", "FI_EFA_FORK_SAFE"):
            unset[name] = "selected automatically since libfabric 1.18"
    if has_interface:
        values.update(NCCL_SOCKET_IFNAME=cluster.network_interface, GLOO_SOCKET_IFNAME=cluster.network_interface)
    if not single:
        # The EFA verdict reads NCCL's own lines.
        values.update({name: value for name, value in NCCL_LINES.items() if name not in baked})
    return (
        {name: value for name, value in values.items() if name not in pinned},
        {name: why for name, why in unset.items() if name in baked and name not in pinned},
    )
