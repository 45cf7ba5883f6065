"""The MPI command of a host and its additional environment variables. The drivers start the daemons on the other hosts in place of ssh.

Options follow those of SageMaker's own toolkit: https://github.com/aws/sagemaker-training-toolkit (mpi.py and smdataparallel.py of 5.1.0,
2026-11-20), which starts processes-per-host times hosts ranks.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from slipway_driver.cluster import Cluster
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.job import Job
from slipway_driver.launchers import rank_command
from slipway_driver.paths import Paths
from slipway_driver.process_environment import interface_exists
from slipway_driver.rank import FOLDER_VARIABLE

#: Where the EFA installer puts Open MPI; the image's PATH takes precedence.
INSTALLED = "/opt/amazon/openmpi/bin"
#: Preloaded libraries that override gethostname(): ours, and the one that AWS images compile at startup.
HOSTNAME_SHIMS: Tuple[str, ...] = ("/opt/slipway/lib/libslipway-hostname.so", "/libchangehostname.so")
SMDDP_PORT = 7592
HOST_MODULE = "slipway_driver.mpi_host"


def find_mpirun(path: str) -> str:
    """The absolute path of mpirun. Raises DriverError (77) if it is not installed."""
    found = shutil.which("mpirun", path=path + os.pathsep + INSTALLED)
    if found is None:
        why = "distribution.launcher: mpi needs mpirun on the image's PATH, got none; use torchrun or another image"
        raise DriverError(ENVIRONMENT, why)
    return found


def split_options(text: str) -> List[str]:
    """Splits `mpiOptions` like a shell, without expansions. Raises DriverError (77) for an unclosed quote."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise DriverError(ENVIRONMENT, "distribution.mpiOptions: must be words of a command line, got %s (%s)" % (text, error))


def mpirun_words(
    cluster: Cluster,
    processes: int,
    interface: Optional[str],
    options: Sequence[str],
    command: Sequence[str],
    mpirun: str,
    has_shim: bool,
    python: str = sys.executable,
) -> List[str]:
    """Starts `processes` ranks on each training host, numbered host by host. The options of the run file come last."""
    hosts = cluster.training_hosts
    words = [mpirun, "--host", ",".join("%s:%d" % (host, processes) for host in hosts), "-np", str(processes * len(hosts))]
    words += ["--allow-run-as-root", "--leave-session-attached", "-wdir", "/", "--bind-to", "none", "--map-by", "slot"]
    settings = {
        # Every driver starts its host's daemon, so the job needs neither sshd nor keys.
        "plm_rsh_agent": "%s -B -u -m %s agent" % (python, HOST_MODULE),
        "plm_rsh_no_tree_spawn": "1",
        "plm_rsh_num_concurrent": str(max(len(hosts), 1)),
        "pml": "ob1",
        "btl": "^openib",
        "btl_vader_single_copy_mechanism": "none",
        "orte_abort_on_non_zero_status": "1",
    }
    if has_shim:
        # With the shim every host knows its own name. Names are compared without DNS, so that hosts may even share one machine.
        settings["if_base_do_not_resolve"] = "1"
    if interface:
        settings.update({"btl_tcp_if_include": interface, "oob_tcp_if_include": interface})
    for name, value in settings.items():
        words += ["-mca", name, value]
    return words + list(options) + list(command)


def smddp_environment(cluster: Cluster, address: str) -> Dict[str, str]:
    """Variables that SageMaker's data parallel library reads under mpirun."""
    found = {"SMDATAPARALLEL_USE_SINGLENODE": "1"}
    if len(cluster.training_hosts) > 1:
        server = {"SMDATAPARALLEL_SERVER_ADDR": address, "SMDATAPARALLEL_SERVER_PORT": str(SMDDP_PORT)}
        found = {"SMDATAPARALLEL_USE_HOMOGENEOUS": "1", **server}
    return {**found, "SAGEMAKER_INSTANCE_TYPE": cluster.instance_type}


def under_mpi4py(script: Sequence[str], has_mpi4py: bool) -> List[str]:
    """Adds `-m mpi4py` to a Python command, so that an exception in one rank ends all ranks; other commands are unchanged."""
    python = has_mpi4py and list(script[1:2]) == ["-u"]
    return [*script[:2], "-m", "mpi4py", *script[2:]] if python else list(script)


def shim_environment(inherited: Mapping[str, str]) -> Tuple[Dict[str, str], str]:
    """LD_PRELOAD with the hostname shim, or a log line if there is none, because MPI may then treat all hosts as one.

    SLIPWAY_HOSTNAME_SHIM sets another path of the shim in the image.
    """
    own = inherited.get("SLIPWAY_HOSTNAME_SHIM")
    candidates = ((own,) if own else ()) + HOSTNAME_SHIMS
    found = next((name for name in candidates if Path(name).is_file()), None)
    if found is None:
        return {}, "no hostname shim in the image (%s): hosts are distinguished only by their addresses" % ", ".join(candidates)
    before = inherited.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": found + (":" + before if before else "")}, ""


def mpi_environment(job: Job, cluster: Cluster, paths: Paths, inherited: Mapping[str, str], master: str) -> Tuple[Dict[str, str], str]:
    """Variables of an MPI start, and a log line about a missing part. Raises DriverError (77) if several hosts have no secret."""
    if job.launcher != "mpi" or not cluster.takes_part:
        return {}, ""
    if not job.restart_secret and len(cluster.training_hosts) > 1:
        raise DriverError(ENVIRONMENT, "job.json restartSecret: must be set for launcher mpi on several hosts, got nothing")
    preload, complaint = shim_environment(inherited)
    smddp = smddp_environment(cluster, master) if job.collectives == "smddp" else {}
    return {**preload, FOLDER_VARIABLE: str(paths.code), **smddp}, complaint


def mpi_words(job: Job, cluster: Cluster, script: Sequence[str], environ: Mapping[str, str]) -> List[str]:
    """The mpirun command on the first host; empty on the others, which wait for mpirun."""
    if cluster.rank != 0:
        return []
    path = environ.get("PATH", "")
    smddprun = shutil.which("smddprun", path=path) if job.collectives == "smddp" else None
    program = [*([smddprun] if smddprun else []), *under_mpi4py(script, importlib.util.find_spec("mpi4py") is not None)]
    interface = cluster.network_interface if interface_exists(cluster.network_interface) else None
    options = split_options(job.mpi_options)
    command, mpirun = rank_command("-", program), find_mpirun(path)
    return mpirun_words(cluster, job.processes_per_host, interface, options, command, mpirun, "LD_PRELOAD" in environ)
