"""Launch commands as argument lists, which are never passed through a shell, and the outcome of a launcher that the ranks' records cannot
show: `launcher.json` in the state folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from pathlib import Path
from typing import List, Optional, Sequence

from slipway_driver.cluster import Cluster
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.rank import write_state

RANK_MODULE = "slipway_driver.rank"
_END = "launcher.json"


def script_command(entry_point: str, builtin_module: Optional[str], arguments: Sequence[str], python: str = sys.executable) -> List[str]:
    """The command for the user's script (a .py or .sh file, or a module) or a built-in module. Raises DriverError (77) otherwise."""
    if builtin_module is not None:
        return [python, "-u", "-m", builtin_module, *arguments]
    if entry_point.endswith(".py"):
        return [python, "-u", entry_point, *arguments]
    if entry_point.endswith(".sh"):
        return ["/bin/bash", os.path.join(".", entry_point), *arguments]
    if re.match(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", entry_point):
        return [python, "-u", "-m", entry_point, *arguments]
    raise DriverError(ENVIRONMENT, "code.entryPoint: must be a .py file, a .sh file or a module, got %s" % entry_point)


def rank_command(state_folder: str, script: Sequence[str], python: str = sys.executable) -> List[str]:
    """Runs `script` under the wrapper that keeps the output, exit code and first error of each rank separate."""
    return [python, "-B", "-u", "-m", RANK_MODULE, state_folder, *script]


def torchrun_command(
    cluster: Cluster, processes: int, master_address: str, master_port: int, command: Sequence[str], python: str = sys.executable
) -> List[str]:
    """The torchrun command with a static rendezvous: no elasticity, every host knows its rank.

    `--no-python` is set because each rank runs under the driver's wrapper.
    """
    return [
        python,
        "-m",
        "torch.distributed.run",
        "--nnodes=%d" % len(cluster.training_hosts),
        "--nproc-per-node=%d" % processes,
        "--node-rank=%d" % cluster.rank,
        "--rdzv-backend=static",
        "--master-addr=%s" % master_address,
        "--master-port=%d" % master_port,
        "--max-restarts=0",
        "--no-python",
        *command,
    ]


def write_launcher_end(state: Path, end: Failure) -> None:
    """Writes the outcome unless one exists: later outcomes are consequences of the first."""
    if not (state / _END).exists():
        write_state(state, _END, end)


def read_launcher_end(state: Path) -> Optional[Failure]:
    """The recorded outcome; None if there is none."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Failure(*json.loads((state / _END).read_text(encoding="utf-8")))
    return None
