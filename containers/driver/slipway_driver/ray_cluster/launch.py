"""The Ray command of this host, its additional environment variables, and its Ray processes: settings, `ray start`, object store size, end.

Names of Ray: https://docs.ray.io/en/latest/cluster/cli.html, ray-core/configure.html and ray-security/token-auth.html; checked in the
source of ray 2.60.0, 2026-11-22. Other versions of Ray ignore variables that they do not know.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from slipway_driver.cluster import Cluster
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import ENVIRONMENT, TRY_AGAIN, DriverError, class_of, shell_code
from slipway_driver.job import Job, read_job
from slipway_driver.log import log
from slipway_driver.rank import die_with_parent
from slipway_driver.restart_policy import HARDWARE

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
        raise DriverError(why)


def ray_environment(job: Job, cluster: Cluster, inherited: Mapping[str, str], master: str, port: int) -> Dict[str, str]:
    """Environment variables of a Ray start; empty for other launchers and for hosts that do not train."""
    if job.launcher != "ray" or not cluster.takes_part:
        return {}
    if not job.restart_secret and len(cluster.training_hosts) > 1:
        raise DriverError("job.json restartSecret: must be set for launcher ray on several hosts, got nothing")
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
        raise DriverError(why % ", ".join(refused))
    gpus = min(int(hardware.get("gpus") or 0), job.processes_per_host)
    layout = json.dumps({"hosts": list(cluster.training_hosts), "cpus": hardware["cpus"], "gpus": gpus}, separators=(",", ":"))
    return lambda state: [sys.executable, "-B", "-u", "-m", HOST_MODULE, str(state), layout, *script]


#: The same shares as Ray's defaults: 30 % of the memory, at most 200 GB. NCCL also has buffers in /dev/shm, so only a part of it is used.
MEMORY_SHARE, SHM_SHARE, MAX_BYTES = 0.3, 0.8, 200 * 10**9
#: Ray's minimum (OBJECT_STORE_MINIMUM_MEMORY_BYTES of ray 2.60.0).
MIN_BYTES = 75 * 2**20
#: Ray creates sockets below the folder. A socket path has at most 107 characters on Linux, of which Ray uses up to 80.
TEMPORARY, LONGEST_TEMPORARY = "/tmp", 24
#: Exit code of `ray start` for an unknown option or an invalid value.
USAGE_ERROR = 2
#: Ray drains a node until its tasks have ended, up to 30 s. At this point no task needs to complete.
STOP_SECONDS = 10.0
TAIL_LINES = 20
#: Time for the hosts of a job to join: they do not start at the same time. SageMaker's own toolkit waits equally long for DNS names.
JOIN_SECONDS = 900.0


def memory_bytes(proc: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Memory available to the container in bytes: the host's available memory, or the cgroup limit if it is lower."""
    available = next(int(line.split()[1]) * 1024 for line in proc.read_text().splitlines() if line.startswith("MemAvailable:"))
    try:
        return min(available, int(cgroup.read_text()))
    except (OSError, ValueError):  # "max", or another version of cgroups.
        return available


def object_store_bytes(memory: int, shared_memory: int, nodes_here: int = 1) -> Optional[int]:
    """Size of one node's object store in bytes; None if /dev/shm is too small, so that Ray uses the disk."""
    size = int(min(MEMORY_SHARE * memory, SHM_SHARE * shared_memory, MAX_BYTES) / nodes_here)
    return size if size >= MIN_BYTES else None


def start_words(where: Sequence[str], host: str, resources: Mapping[str, Any], parameters: Mapping[str, Any]) -> List[str]:
    """The `ray start` command. `where`: --head or --address; `resources`: the driver's options; `parameters`: the run file's, which win."""
    given = {option_name(name): value for name, value in parameters.items()}
    own = given.pop("resources", None)
    labels = {HOST_RESOURCE + host: 1, **(own if isinstance(own, dict) else {})}
    options: Dict[str, Any] = {**resources, **given}
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *where]
    words += ["--%s=%s" % (name, _text(value)) for name, value in options.items() if value is not None]
    return [*words, "--resources=%s" % json.dumps(labels, separators=(",", ":"))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


class RaySettings:
    """Settings of one host. `layout`: the training hosts in rank order, of which the first one runs Ray's head node, and the number of CPUs
    and GPUs that Ray may use on each host."""

    def __init__(self, environ: Mapping[str, str], layout: Mapping[str, Any]) -> None:
        job = read_job(Path(environ["SLIPWAY_JOB_FILE"]))
        self.secret, self.parameters = job.restart_secret, job.parameters
        self.host, self.hosts = environ["SM_CURRENT_HOST"], tuple(layout["hosts"])
        self.master, self.port = environ["MASTER_ADDR"], int(environ["MASTER_PORT"])
        #: Address of this host; "" if it is unknown, so that Ray determines it.
        self.address = environ.get("SLIPWAY_HOST_ADDRESS", "")
        self.bind_to = environ.get("SLIPWAY_BIND_ADDRESS", "")
        self.join_seconds = float(environ.get("SLIPWAY_RAY_JOIN_SECONDS") or JOIN_SECONDS)
        self.cpus, self.gpus = int(layout["cpus"]), int(layout["gpus"])

    @property
    def control_port(self) -> int:
        """The port on which the first host communicates with the others, in addition to Ray's ports."""
        return self.port + CONTROL_PORT_OFFSET

    def words(self, head: bool) -> List[str]:
        """The `ray start` command of this host."""
        ray_port = self.port + RAY_PORT_OFFSET
        where = ["--head", "--port=%d" % ray_port] if head else ["--address=%s:%d" % (self.master, ray_port)]
        given = {name: value for name, value in self.parameters.items() if head or option_name(name) not in HEAD_OPTIONS}
        return start_words(where, self.host, self._resources(head), given)

    def _resources(self, head: bool) -> Dict[str, Any]:
        nodes_here = len(self.hosts) if self.bind_to else 1
        shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
        store = object_store_bytes(memory_bytes(), shared, nodes_here)
        if store is None:
            log("ray: /dev/shm is too small for an object store; Ray uses the disk, which is slower")
        return {
            "node-ip-address": self.address or None,
            "num-cpus": self.cpus,
            "num-gpus": self.gpus,
            "object-store-memory": store,
            "include-dashboard": False if head else None,
            # The hosts of the sandbox share the ports of one machine.
            "dashboard-agent-listen-port": 0 if self.bind_to else None,
        }


def temporary_folder() -> str:
    """Folder for Ray's session: the system's temporary folder, unless its path is too long for Ray's sockets."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= LONGEST_TEMPORARY else TEMPORARY


class RayNode:
    """`ray start --block` and its child processes, which end with this process."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir=temporary_folder()))
        self._log = self.folder / "ray-start.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*words, "--temp-dir=%s" % self.folder], env=dict(environ), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, preexec_fn=die_with_parent,
            )  # fmt: skip

    @property
    def code(self) -> Optional[int]:
        """Exit code of `ray start`; None while it runs."""
        return self._process.poll()

    def unexpected_end(self, host: str) -> Failure:
        """The failure after the Ray processes of this host ended unexpectedly. Logs their last output."""
        code, lines = shell_code(self.code or 0), []
        # Of `ray start` and of its node manager.
        for path in [self._log, *sorted(self.folder.glob("session_2*/logs/raylet.err"))]:
            lines += path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        for line in lines:
            log("ray: %s" % line)
        if code == USAGE_ERROR:
            last_line = next((line for line in reversed(lines) if line.strip()), "")
            why = "distribution.parameters: ray start rejected an option: %s" % last_line
            return Failure(ENVIRONMENT, class_of(ENVIRONMENT), None, why, [], host)
        return Failure(TRY_AGAIN, HARDWARE, None, "Ray's processes exited with code %d" % code, [], host)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ends all processes of the node; kills them after `seconds`."""
        if self.code is None:
            self._process.terminate()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(str(self.folder), ignore_errors=True)
