"""The Ray command of this host and its additional environment variables.

Names of Ray: https://docs.ray.io/en/latest/cluster/cli.html, ray-core/configure.html and ray-security/token-auth.html; checked in the
source of ray 2.60.0, 2026-11-22. Other versions of Ray ignore variables that they do not know.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

from slipway_driver.cluster import Cluster
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.job import Job

#: Follow the rendezvous port (MASTER_PORT), the driver protocol (+ 1) and the all-reduce probe (+ 3).
CONTROL_PORT_OFFSET, RAY_PORT_OFFSET = 2, 4
HOST_MODULE = "slipway_driver.ray_cluster"
#: Prefix of a custom resource of every node. Tasks can request a host with it, and the driver uses it to identify joined hosts.
HOST_RESOURCE = "host:"
#: Options of `ray start` that the driver sets itself.
OWN_OPTIONS = ("head", "address", "port", "node-ip-address", "block", "temp-dir")
#: Options that apply only to the head node.
HEAD_OPTIONS = ("include-dashboard", "dashboard-host", "dashboard-port", "ray-client-server-port")
#: Defaults that the image or the run file can override.
_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Readers of the log search it, so every line of every worker is needed, without colors.
    "RAY_DEDUP_LOGS": "0",
    "RAY_COLOR_PREFIX": "0",
    # Ray Train would also write the prints of a worker to its own log, which Ray prints again.
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",
    "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
}


def require_ray() -> None:
    """Raises DriverError (77) if Ray is not installed."""
    importlib.invalidate_caches()  # requirements.txt may just have installed it.
    if importlib.util.find_spec("ray") is None:
        why = "distribution.launcher: ray needs the package ray in the image, got none; add ray to requirements.txt, or use another image"
        raise DriverError(ENVIRONMENT, why)


def ray_environment(job: Job, cluster: Cluster, inherited: Mapping[str, str], master: str, port: int) -> Dict[str, str]:
    """Environment variables of a Ray start; empty for other launchers and for hosts that do not train."""
    if job.launcher != "ray" or not cluster.takes_part:
        return {}
    if not job.restart_secret and len(cluster.training_hosts) > 1:
        raise DriverError(ENVIRONMENT, "job.json restartSecret: must be set for launcher ray on several hosts, got nothing")
    require_ray()
    variables = {name: value for name, value in _DEFAULTS.items() if name not in inherited}
    variables["RAY_ADDRESS"] = "%s:%d" % (master, port + RAY_PORT_OFFSET)
    if job.restart_secret and "RAY_AUTH_MODE" not in inherited:
        # Without a token, every process that can reach the port may run code: https://docs.ray.io/en/latest/ray-security/index.html.
        # The token is an HMAC of the job's secret, equal on all hosts, that does not reveal it.
        token = hmac.new(job.restart_secret.encode("utf-8"), b"ray-auth-token", hashlib.sha256).hexdigest()
        variables.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token})
    return variables


def option_name(parameter: str) -> str:
    """Converts a parameter of the run file to an option of `ray start`: `object_store_memory` becomes `object-store-memory`."""
    return parameter.lstrip("-").replace("_", "-")


def ray_command_of(job: Job, cluster: Cluster, hardware: Mapping[str, Any], script: Sequence[str]) -> Callable[[Path], List[str]]:
    """The command as a function of the state folder. Ray may use all CPUs, and as many GPUs as the run has processes per host."""
    refused = sorted(name for name in job.parameters if option_name(name) in OWN_OPTIONS)
    if refused:
        why = "distribution.parameters: must not contain options of ray start that the driver sets itself, got %s; remove them"
        raise DriverError(ENVIRONMENT, why % ", ".join(refused))
    gpus = min(int(hardware.get("gpus") or 0), job.processes_per_host)
    layout = json.dumps({"hosts": list(cluster.training_hosts), "cpus": hardware["cpus"], "gpus": gpus}, separators=(",", ":"))
    return lambda state: [sys.executable, "-B", "-u", "-m", HOST_MODULE, str(state), layout, *script]
