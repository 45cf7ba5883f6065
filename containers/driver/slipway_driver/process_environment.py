"""The environment of training processes: inherited variables, SM_*, EFA and NCCL, SLIPWAY_*, and finally the user's variables."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence, Tuple

from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.job import Job
from slipway_driver.paths import Paths

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
    variables = {
        "SLIPWAY_RUN_ID": job.run_id,
        "SLIPWAY_ATTEMPT": str(job.attempt),
        "SLIPWAY_CHECKPOINT_URI": paths.localised(job.checkpoint_uri),
        "SLIPWAY_JOB_FILE": str(paths.channel("job") / "job.json"),
        "SLIPWAY_STARTED_AT": str(int(started_at)),
        # On the first host, the file exists once the control plane has requested a hand-over.
        "SLIPWAY_HAND_OVER_FILE": str(paths.hand_over),
        # On this instance's own disk, for restarts in place; the service does not upload this folder.
        "SLIPWAY_LOCAL_COPIES": str(paths.base / "checkpoint-copies"),
    }
    if limit is not None:
        variables["SLIPWAY_DEADLINE"] = str(int(limit))
    return variables


def rendezvous_variables(
    own_address: str, port: int, master_name: str, reached_at: Mapping[str, str], shared_machine: bool
) -> Dict[str, str]:
    """MASTER_ADDR, MASTER_PORT and the names of SDK v3 for them.

    `master_name`: name or address of the master; `reached_at`: the same for every host of the job, including groups that do not train.
    Servers listen on SLIPWAY_BIND_ADDRESS. It is empty (all interfaces) because a host's name may resolve to an address outside its
    container; hosts that share one machine use their own address.
    """
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
    """PYTHONPATH of training processes: the user's code, the inherited entries, then the driver's folder."""
    parts = [str(code_folder)] + [part for part in inherited.split(":") if part and part != str(driver_folder)]
    return ":".join(parts + [str(driver_folder)])


def compose(
    inherited: Mapping[str, str],
    layers: Sequence[Mapping[str, str]],
    unset: Mapping[str, str],
    user: Mapping[str, str],
) -> Tuple[Dict[str, str], Sequence[str]]:
    """The final environment, and a log line for each variable that was unset, from the reasons `unset`. Later layers take precedence; the
    user's variables come last."""
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
