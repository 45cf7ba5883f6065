"""The environment of training processes: inherited variables, SM_*, EFA and NCCL, SLIPWAY_*, and finally the user's variables.

The image sets FI_PROVIDER=efa and NCCL_PROTO=simple. They are unset in these cases, unless the user has set them:
- FI_PROVIDER=efa without an EFA device makes libfabric fail, and with older plugins the whole job (aws-ofi-nccl issue 174);
- NCCL_PROTO=simple on P5 and later only disables the LL and LL128 protocols (NVIDIA discourages setting it at all);
- on a single host there is no traffic between hosts, so neither variable has an effect.
FI_EFA_USE_DEVICE_RDMA is never set: libfabric 1.18 and later selects it automatically, and the value 1 aborts if the device does not
support RDMA.
Sources: aws-ofi-nccl doc/efa-env-var.md v1.21.1, libfabric man fi_efa.7, NCCL env.rst 2.30; retrieved 2026-11-20.

The service itself sets no SM_* variable: they come from the sagemaker-training toolkit and the Python SDK's own driver, whose names and
formats are used here (https://github.com/aws/sagemaker-training-toolkit, release 5.1.4; sagemaker-python-sdk v3, 2026-08-21). The driver's
internal channels are not in SM_CHANNELS, so that a script that iterates over its channels finds only its data.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from slipway_driver.cluster import Cluster
from slipway_driver.exit_codes import DriverError
from slipway_driver.job import Job, Paths
from slipway_driver.log import log
from slipway_driver.tables import EFA_INSTANCES

#: The variables that AWS published in 2023 for p4d (EC2 user guide, "Get started with EFA and NCCL"), verbatim.
GUIDE_2023 = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "NCCL_PROTO": "simple"}
NCCL_LINES = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
NO_DEVICE = "no EFA device in the container: libfabric would find no provider"
MASTER_PORT = 7777
# Reserved for the last checkpoint before the service's time limit: 5 % of the runtime, at most 15 minutes.
DEADLINE_SHARE = 0.05
DEADLINE_RESERVE_SECONDS = 900.0
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
        raise DriverError("; ".join(issues))


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
) -> Dict[str, str]:
    """The environment: later layers and then the user's variables win. Logs each variable in `unset`, and its reason."""
    environ = dict(inherited)
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # It is for the driver.
    for layer in layers:
        environ.update(layer)
    for name, why in unset.items():
        log("environment: %s=%s unset (%s)" % (name, environ.pop(name, ""), why))
    environ.setdefault("PYTHONUNBUFFERED", "1")
    # A rank that is aborted after a hang then prints the stack of each of its threads.
    environ.setdefault("PYTHONFAULTHANDLER", "1")
    ours = environ.get("PYTHONPATH", "")
    environ.update(user)
    if "PYTHONPATH" in user:
        # Without these entries the ranks would not find the driver's modules.
        environ["PYTHONPATH"] = ":".join(dict.fromkeys(part for part in [*user["PYTHONPATH"].split(":"), *ours.split(":")] if part))
    return environ


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


PLUMBING_CHANNELS = ("driver", "job", "code")
LOG_LEVEL_INFO = 20


def encoded(value: Any) -> str:
    """Formats a value like the toolkit: strings unchanged, everything else as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def parse_hyperparameters(raw: Mapping[str, str]) -> Dict[str, Any]:
    """The script's hyperparameters, decoded if they are JSON, without internal ones of the toolkit."""
    internal = ("_tuning_objective_metric", "default_user_module_name")
    return {name: _decoded(value) for name, value in raw.items() if not name.startswith("sagemaker_") and name not in internal}


def _read_json(path: Path) -> Dict[str, Any]:
    """Reads one of the service's config files. A missing file is an empty object, because processing jobs have fewer files."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _training_environment(job: Job, cluster: Cluster, paths: Paths, hardware: Mapping[str, Any], job_name: str) -> Dict[str, Any]:
    """The values of the variables."""
    hyperparameters = _read_json(paths.config / "hyperparameters.json")
    if paths.processing:
        channels: Dict[str, Any] = {entry.name: {} for entry in sorted(paths.data.iterdir()) if entry.is_dir()}
    else:
        channels = _read_json(paths.config / "inputdataconfig.json")
    data_channels = {name: config for name, config in channels.items() if name not in PLUMBING_CHANNELS}
    groups = {str(group["instance_group_name"]): dict(group) for group in cluster.raw.get("instance_groups") or []}
    return {
        "additional_framework_parameters": {},
        "channel_input_dirs": {name: str(paths.channel(name)) for name in data_channels},
        "current_host": cluster.current_host,
        "current_instance_group": cluster.current_group,
        "current_instance_group_hosts": list(groups.get(cluster.current_group, {}).get("hosts", [])),
        "current_instance_type": cluster.instance_type,
        "distribution_hosts": list(cluster.training_hosts) if job.training_groups or not groups else [],
        "distribution_instance_groups": list(job.training_groups),
        "framework_module": None,
        "hosts": list(cluster.hosts),
        "hyperparameters": parse_hyperparameters(hyperparameters),
        "input_config_dir": str(paths.config),
        "input_data_config": data_channels,
        "input_data_dir": str(paths.data),
        "input_dir": str(paths.base / "input"),
        "instance_groups": list(groups),
        "instance_groups_dict": groups,
        "is_hetero": cluster.heterogeneous,
        "is_master": cluster.has_rank_0,
        "job_name": job_name,
        "log_level": _decoded(hyperparameters.get("sagemaker_container_log_level", LOG_LEVEL_INFO)),
        "master_hostname": cluster.master,
        "model_dir": str(paths.model),
        "module_dir": str(paths.code),
        "module_name": job.entry_point[:-3] if job.entry_point.endswith(".py") else job.entry_point,
        "network_interface_name": cluster.network_interface,
        "num_cpus": hardware["cpus"],
        "num_gpus": hardware["gpus"],
        "num_neurons": hardware["neurons"],
        "output_data_dir": str(paths.output_data),
        "output_dir": str(paths.output),
        "output_intermediate_dir": str(paths.output / "intermediate"),
        "resource_config": dict(cluster.raw),
        "topology": cluster.raw.get("topology", []),
        "user_entry_point": job.entry_point,
    }


#: Values of _training_environment() that have no variable of their own, or have one under another condition.
_WITHOUT_VARIABLE = ("channel_input_dirs", "distribution_hosts", "is_master", "job_name", "master_hostname", "topology")
#: Variables that are not named after their value.
_NAMES = {"hyperparameters": "SM_HPS", "additional_framework_parameters": "SM_FRAMEWORK_PARAMS"}


def sm_variables(job: Job, cluster: Cluster, paths: Paths, hardware: Mapping[str, Any], job_name: str) -> Dict[str, str]:
    """All SM_* variables of one host."""
    facts = _training_environment(job, cluster, paths, hardware, job_name)
    variables = {_NAMES.get(name, "SM_" + name.upper()): encoded(value) for name, value in facts.items() if name not in _WITHOUT_VARIABLE}
    folders: Dict[str, str] = facts["channel_input_dirs"]
    variables.update({"SM_CHANNEL_" + name.upper(): folder for name, folder in folders.items()})
    hyperparameters = {"SM_HP_" + name.upper(): encoded(value) for name, value in facts["hyperparameters"].items()}
    # The toolkit keeps dashes, which are not valid in shell variable names; the Python SDK v3 replaces them by underscores. Scripts use
    # both.
    variables.update({name.replace("-", "_"): value for name, value in hyperparameters.items()})
    variables.update(hyperparameters)
    if facts["topology"]:
        variables["SM_TOPOLOGY"] = encoded(facts["topology"])
    return {
        **variables,
        "SM_CHANNELS": encoded(sorted(folders)),
        "SM_USER_ARGS": encoded(list(job.arguments)),
        "SM_TRAINING_ENV": encoded(facts),
        # Variables of the Python SDK v3's own driver.
        "SM_HOST_COUNT": str(len(cluster.hosts)),
        "SM_CURRENT_HOST_RANK": str(cluster.hosts.index(cluster.current_host)),
        "SM_SOURCE_DIR": str(paths.code),
        "SM_ENTRY_SCRIPT": job.entry_point,
        "SM_OUTPUT_FAILURE": str(paths.failure),
    }
