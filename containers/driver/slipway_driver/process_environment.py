"""The environment of training processes: inherited variables, SM_*, EFA and NCCL, SLIPWAY_*, and finally the user's variables.

The image sets FI_PROVIDER=efa and NCCL_PROTO=simple. They are unset in these cases, unless the user has set them:
- FI_PROVIDER=efa without an EFA device makes libfabric fail, and with older plugins the whole job (aws-ofi-nccl issue 174);
- NCCL_PROTO=simple on P5 and later only disables the LL and LL128 protocols (NVIDIA discourages setting it at all);
- on a single host there is no traffic between hosts, so neither variable has an effect.
FI_EFA_USE_DEVICE_RDMA is never set: libfabric 1.18 and later selects it automatically, and the value 1 aborts if the device does not
support RDMA.
Sources: aws-ofi-nccl doc/efa-env-var.md v1.21.1, libfabric man fi_efa.7, NCCL env.rst 2.30; retrieved 2026-11-20.
"""

from __future__ import annotations

import math
import os
import zlib
from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence, Tuple

from slipway_driver.cluster import Cluster
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.job import Job
from slipway_driver.paths import Paths
from slipway_driver.tables import EFA_INSTANCES

#: The variables that AWS published in 2023 for p4d (EC2 user guide, "Get started with EFA and NCCL"), verbatim.
GUIDE_2023 = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "NCCL_PROTO": "simple"}
NCCL_LINES = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
NO_DEVICE = "no EFA device in the container: libfabric would find no provider"
MASTER_PORT = 7777
# Reserved for the last checkpoint before the service's time limit: 5 % of the runtime, at most 15 minutes.
DEADLINE_SHARE = 0.05
DEADLINE_RESERVE_SECONDS = 900.0
#: Variables of the driver process that scripts must not inherit.
DRIVER_ONLY = ("PYTHONDONTWRITEBYTECODE",)
#: Variables with which a user configures the driver, and their smallest valid number of seconds.
SECONDS = {
    "SLIPWAY_GPU_SECONDS": 0.1,
    "SLIPWAY_HAND_OVER_SECONDS": 0.01,
    "SLIPWAY_PEER_SECONDS": 0.01,
    "SLIPWAY_PROBE_SECONDS": 0.0,
    "SLIPWAY_RAY_JOIN_SECONDS": 0.01,
    "SLIPWAY_WATCHDOG_SECONDS": 0.01,
}


def check_seconds(environ: Mapping[str, str]) -> None:
    """Raises DriverError (77) with every variable of SECONDS that has an invalid value."""
    issues = []
    for name, least in SECONDS.items():
        given = environ.get(name)
        try:
            fits = not given or least <= float(given) < math.inf
        except ValueError:
            fits = False
        if not fits:
            issues.append("environmentVariables.%s: must be a number of at least %g, got %s; leave it out" % (name, least, given))
    if issues:
        raise DriverError(ENVIRONMENT, "; ".join(issues))


def master_port(job_name: str, shared_machine: bool) -> int:
    """7777 as in the toolkit. In the sandbox, where hosts share one machine and its ports, each job gets its own port."""
    if not shared_machine:
        return MASTER_PORT
    # Below the usual ephemeral range (32768 and up), and the same on every host of the job without communication.
    return 20000 + zlib.crc32(job_name.encode()) % 10000


def deadline(started_at: float, max_runtime_seconds: Optional[int]) -> Optional[float]:
    """Epoch seconds by which the last checkpoint must be saved and the process ended; None without a limit."""
    if max_runtime_seconds is None:
        return None
    return started_at + max_runtime_seconds - min(DEADLINE_RESERVE_SECONDS, DEADLINE_SHARE * max_runtime_seconds)


def slipway_variables(job: Job, paths: Paths, started_at: float) -> Dict[str, str]:
    """The SLIPWAY_* variables of the contract. Paths below /opt/ml are replaced by those of this instance."""
    limit = deadline(started_at, job.max_runtime_seconds)
    return {
        "SLIPWAY_RUN_ID": job.run_id,
        "SLIPWAY_ATTEMPT": str(job.attempt),
        "SLIPWAY_CHECKPOINT_URI": paths.localised(job.checkpoint_uri),
        "SLIPWAY_JOB_FILE": str(paths.channel("job") / "job.json"),
        "SLIPWAY_STARTED_AT": str(int(started_at)),
        # On the first host, the file exists once the control plane has requested a hand-over.
        "SLIPWAY_HAND_OVER_FILE": str(paths.hand_over),
        # On this instance's own disk, for restarts in place; the service does not upload this folder.
        "SLIPWAY_LOCAL_COPIES": str(paths.base / "checkpoint-copies"),
        **({"SLIPWAY_DEADLINE": str(int(limit))} if limit is not None else {}),
    }


def python_path(driver_folder: Path, code_folder: Path, inherited: str) -> str:
    """PYTHONPATH of training processes: the user's code, the inherited entries, then the driver's folder."""
    parts = [str(code_folder)] + [part for part in inherited.split(":") if part and part != str(driver_folder)]
    return ":".join(parts + [str(driver_folder)])


def compose(
    inherited: Mapping[str, str], layers: Sequence[Mapping[str, str]], unset: Mapping[str, str], user: Mapping[str, str]
) -> Tuple[Dict[str, str], Sequence[str]]:
    """The environment, later layers and then the user's variables win, and a log line for each variable in `unset` (its reason)."""
    environ = {name: value for name, value in inherited.items() if name not in DRIVER_ONLY}
    for layer in layers:
        environ.update(layer)
    lines = ["environment: %s=%s unset (%s)" % (name, environ.pop(name, ""), why) for name, why in unset.items()]
    environ.setdefault("PYTHONUNBUFFERED", "1")
    # A rank that is aborted after a hang then prints the stack of each of its threads.
    environ.setdefault("PYTHONFAULTHANDLER", "1")
    ours = environ.get("PYTHONPATH", "")
    environ.update(user)
    if "PYTHONPATH" in user:
        # Without these entries the ranks would not find the driver's modules.
        environ["PYTHONPATH"] = ":".join(dict.fromkeys(part for part in [*user["PYTHONPATH"].split(":"), *ours.split(":")] if part))
    return environ, lines


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
