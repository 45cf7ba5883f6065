"""The MPI command of this host and its additional environment variables."""

from __future__ import annotations

import importlib.util
import sys
from typing import Dict, List, Mapping, Sequence, Tuple

from slipway_driver import mpi_options as mpi
from slipway_driver.cluster import Cluster
from slipway_driver.efa_environment import interface_exists
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.job import Job
from slipway_driver.launchers import rank_command
from slipway_driver.paths import Paths
from slipway_driver.rank import FOLDER_VARIABLE


def mpi_environment(
    job: Job, cluster: Cluster, paths: Paths, inherited: Mapping[str, str], master: str
) -> Tuple[Dict[str, str], List[str]]:
    """Environment variables of an MPI start, and log lines about missing parts; both empty for other launchers. Raises DriverError (77) if
    several hosts have no secret."""
    if job.launcher != "mpi" or not cluster.takes_part:
        return {}, []
    if not job.restart_secret and len(cluster.training_hosts) > 1:
        raise DriverError(ENVIRONMENT, "job.json restartSecret: must be set for launcher mpi on several hosts, got nothing")
    preload, complaint = mpi.shim_environment(inherited)
    variables = dict(preload)
    variables[FOLDER_VARIABLE] = str(paths.code)
    if job.collectives == "smddp":
        variables.update(mpi.smddp_environment(cluster, master))
    return variables, [complaint] if complaint else []


def mpi_words(job: Job, cluster: Cluster, script: Sequence[str], environ: Mapping[str, str]) -> List[str]:
    """The mpirun command on the first host; empty on the others, which wait for mpirun."""
    if cluster.rank != 0:
        return []
    path = environ.get("PATH", "")
    starter = mpi.smddprun(path) if job.collectives == "smddp" else []
    program = starter + mpi.under_mpi4py(script, importlib.util.find_spec("mpi4py") is not None)
    interface = cluster.network_interface if interface_exists(cluster.network_interface) else None
    options = mpi.split_options(job.mpi_options)
    command, mpirun = rank_command("-", program), mpi.find_mpirun(path)
    return mpi.mpirun_words(cluster, job.processes_per_host, interface, options, command, mpirun, "LD_PRELOAD" in environ)


def mpi_host_command(state_folder: str, words: Sequence[str]) -> List[str]:
    """The command that runs `words` (mpirun), or that waits for mpirun if `words` is empty."""
    return [sys.executable, "-B", "-u", "-m", mpi.HOST_MODULE, state_folder, *words]
