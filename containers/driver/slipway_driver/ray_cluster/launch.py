"""A Ray launch as this host starts it: its command, and what its environment needs beside the usual.

Ray's own names (https://docs.ray.io/en/latest/cluster/cli.html, ray-core/configure.html and ray-security/token-auth.html; read in the
source of ray 2.60.0, 2026-11-22). Ray versions that do not know a variable ignore it.
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

#: Next to the rendezvous (MASTER_PORT), the drivers' own channel (+ 1) and the all-reduce probe (+ 3).
CONTROL_PORT_OFFSET, RAY_PORT_OFFSET = 2, 4
HOST_MODULE = "slipway_driver.ray_cluster"
#: A custom resource of every node, by which tasks can ask for one host and the driver tells which hosts have joined.
HOST_RESOURCE = "host:"
#: Options of `ray start` that the driver sets itself.
OWN_OPTIONS = ("head", "address", "port", "node-ip-address", "block", "temp-dir")
#: Options that other nodes have no use for.
HEAD_OPTIONS = ("include-dashboard", "dashboard-host", "dashboard-port", "ray-client-server-port")
#: Defaults that an image or the run file may replace.
_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Each line of each worker is wanted, without colours, because the log's readers search it.
    "RAY_DEDUP_LOGS": "0",
    "RAY_COLOR_PREFIX": "0",
    # Ray Train would write each print of a worker to its own log as well, which Ray shows again.
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",
    "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
}


def ray_token(secret: str) -> str:
    """Ray's authentication token, derived from the job's secret: equal on all hosts, and it does not tell the secret."""
    return hmac.new(secret.encode("utf-8"), b"ray-auth-token", hashlib.sha256).hexdigest()


def require_ray() -> None:
    """Raises DriverError (77) where the image has no Ray."""
    importlib.invalidate_caches()  # requirements.txt may have installed it a moment ago.
    if importlib.util.find_spec("ray") is None:
        why = "distribution.launcher: ray needs the package ray in the image, got none; add ray to requirements.txt, or use another image"
        raise DriverError(ENVIRONMENT, why)


def ray_environment(job: Job, cluster: Cluster, inherited: Mapping[str, str], master: str, port: int) -> Dict[str, str]:
    """Variables of a Ray launch; none for other launchers, and for hosts that take no part."""
    if job.launcher != "ray" or not cluster.takes_part:
        return {}
    if not job.restart_secret and len(cluster.training_hosts) > 1:
        raise DriverError(ENVIRONMENT, "job.json restartSecret: must be set for launcher ray on several hosts, got nothing")
    require_ray()
    variables = {name: value for name, value in _DEFAULTS.items() if name not in inherited}
    variables["RAY_ADDRESS"] = "%s:%d" % (master, port + RAY_PORT_OFFSET)
    if job.restart_secret and "RAY_AUTH_MODE" not in inherited:
        # Without it, every process that can reach the port may run code: https://docs.ray.io/en/latest/ray-security/index.html.
        variables.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": ray_token(job.restart_secret)})
    return variables


def own_options_in(parameters: Mapping[str, Any]) -> List[str]:
    """Parameters that name an option which the driver sets itself."""
    return sorted(name for name in parameters if option_name(name) in OWN_OPTIONS)


def option_name(parameter: str) -> str:
    """A parameter of the run file as an option of `ray start`: `object_store_memory` is `object-store-memory`."""
    return parameter.lstrip("-").replace("_", "-")


def ray_command_of(job: Job, cluster: Cluster, hardware: Mapping[str, Any], script: Sequence[str]) -> Callable[[Path], List[str]]:
    """The command of this host's part of the launch, as a function of the state folder. Ray may use as many GPUs of each host as the
    run has processes there, and all CPUs."""
    refused = own_options_in(job.parameters)
    if refused:
        why = "distribution.parameters: must not hold options of ray start that the driver sets itself, got %s; remove them"
        raise DriverError(ENVIRONMENT, why % ", ".join(refused))
    gpus = min(int(hardware.get("gpus") or 0), job.processes_per_host)
    layout = json.dumps({"hosts": list(cluster.training_hosts), "cpus": hardware["cpus"], "gpus": gpus}, separators=(",", ":"))
    return lambda state: [sys.executable, "-B", "-u", "-m", HOST_MODULE, str(state), layout, *script]
