"""The environment that training processes start with: inherited, SM_*, EFA/NCCL, SLIPWAY_*, and the user's own last."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence, Tuple

from slipway_driver.efa_environment import Change, apply_changes
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.job import Job
from slipway_driver.paths import Paths

MASTER_PORT = 7777
# Left for the last checkpoint before the service's own limit: 5 % of the runtime, at most 15 minutes.
DEADLINE_SHARE = 0.05
DEADLINE_RESERVE_SECONDS = 900.0
#: What the driver gets for itself and must not hand to scripts.
DRIVER_ONLY = ("PYTHONDONTWRITEBYTECODE",)
#: What a user may set for the driver itself, and the smallest number of seconds that makes sense.
SECONDS = {
    "SLIPWAY_GPU_SECONDS": 0.1,
    "SLIPWAY_HAND_OVER_SECONDS": 0.01,
    "SLIPWAY_PEER_SECONDS": 0.01,
    "SLIPWAY_PROBE_SECONDS": 0.0,
    "SLIPWAY_RAY_JOIN_SECONDS": 0.01,
    "SLIPWAY_WATCHDOG_SECONDS": 0.01,
}


def check_seconds(environ: Mapping[str, str]) -> None:
    """Raises DriverError (77) that names every one of SECONDS that cannot be used."""
    issues = []
    for name, least in SECONDS.items():
        given = environ.get(name)
        if given and not _is_number(given, least):
            issues.append("environmentVariables.%s: must be a number of at least %g, got %s; leave it out" % (name, least, given))
    if issues:
        raise DriverError(ENVIRONMENT, "; ".join(issues))


def _is_number(text: str, least: float) -> bool:
    try:
        return least <= float(text) < math.inf
    except ValueError:
        return False


def master_port(job_name: str, shared_machine: bool) -> int:
    """7777 as the toolkit has it. Hosts that share one machine (sandbox) share its ports: there each job gets its own."""
    if not shared_machine:
        return MASTER_PORT
    # Below the usual ephemeral range (32768 and up), and the same on every host of the job without communication.
    return 20000 + zlib.crc32(job_name.encode()) % 10000


def deadline(started_at: float, max_runtime_seconds: Optional[int]) -> Optional[float]:
    """Epoch seconds before which a checkpoint must be saved and the process gone; None without a limit."""
    if max_runtime_seconds is None:
        return None
    return started_at + max_runtime_seconds - min(DEADLINE_RESERVE_SECONDS, DEADLINE_SHARE * max_runtime_seconds)


def slipway_variables(job: Job, paths: Paths, job_file: Path, started_at: float) -> Dict[str, str]:
    """The SLIPWAY_* variables of the contract. Paths below /opt/ml become this instance's own."""
    limit = deadline(started_at, job.max_runtime_seconds)
    variables = {
        "SLIPWAY_RUN_ID": job.run_id,
        "SLIPWAY_ATTEMPT": str(job.attempt),
        "SLIPWAY_CHECKPOINT_URI": paths.localised(job.checkpoint_uri),
        "SLIPWAY_RESUME_FROM": paths.localised(job.resume_from),
        "SLIPWAY_JOB_FILE": str(job_file),
        "SLIPWAY_STARTED_AT": str(int(started_at)),
        # There once the control plane asks the attempt to save and leave; on the first host.
        "SLIPWAY_HAND_OVER_FILE": str(paths.hand_over),
        # On this instance's own disk, for restarts in place; the service uploads nothing from there.
        "SLIPWAY_LOCAL_COPIES": str(paths.base / "checkpoint-copies"),
    }
    if limit is not None:
        variables["SLIPWAY_DEADLINE"] = str(int(limit))
    return variables


def rendezvous_variables(
    own_address: str, port: int, master_name: str, reached_at: Mapping[str, str], shared_machine: bool
) -> Dict[str, str]:
    """MASTER_ADDR, MASTER_PORT and the SDK v3's names for them. `master_name` is the name or address to connect to, and `reached_at`
    the same for every host of the job, also of groups that do not train. Servers listen on SLIPWAY_BIND_ADDRESS: on all interfaces,
    because the address behind a host's name need not be one of its container's; hosts that share one machine keep to their own."""
    return {
        "MASTER_ADDR": master_name,
        "MASTER_PORT": str(port),
        "SM_MASTER_ADDR": master_name,
        "SM_MASTER_PORT": str(port),
        "SLIPWAY_HOST_ADDRESS": own_address,
        "SLIPWAY_BIND_ADDRESS": own_address if shared_machine else "",
        "SLIPWAY_HOSTS": json.dumps(dict(reached_at), separators=(",", ":")),
    }


def python_path(driver_folder: Path, code_folder: Path, inherited: str) -> str:
    """PYTHONPATH of training processes: the user's code, what was inherited, then the driver's folder (our own modules)."""
    parts = [str(code_folder)] + [part for part in inherited.split(":") if part and part != str(driver_folder)]
    return ":".join(parts + [str(driver_folder)])


def compose(
    inherited: Mapping[str, str],
    layers: Sequence[Mapping[str, str]],
    changes: Sequence[Change],
    user: Mapping[str, str],
) -> Tuple[Dict[str, str], Sequence[str]]:
    """The final environment and the log lines about what was taken away. Later layers win; the user's own come last."""
    environ = {name: value for name, value in inherited.items() if name not in DRIVER_ONLY}
    for layer in layers:
        environ.update(layer)
    lines = apply_changes(environ, changes)
    environ.setdefault("PYTHONUNBUFFERED", "1")
    # A rank that is told to abort after a hang then prints the stack of each of its threads.
    environ.setdefault("PYTHONFAULTHANDLER", "1")
    ours = environ.get("PYTHONPATH", "")
    environ.update(user)
    if "PYTHONPATH" in user:
        # Without ours the ranks would not find the driver's modules.
        environ["PYTHONPATH"] = ":".join(dict.fromkeys(part for part in [*user["PYTHONPATH"].split(":"), *ours.split(":")] if part))
    return environ, lines
