"""The words of mpirun for one job: ranks on all hosts, started by the drivers themselves instead of ssh.

Options follow those of the service's own toolkit: https://github.com/aws/sagemaker-training-toolkit (mpi.py and smdataparallel.py of
5.1.0, 2026-11-20), which starts processes-per-host times hosts ranks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from slipway_driver.cluster import Cluster
from slipway_driver.exit_codes import ENVIRONMENT, DriverError

#: Where the EFA installer puts Open MPI; the image's PATH is asked first.
INSTALLED = "/opt/amazon/openmpi/bin"
#: The shim that answers gethostname(): ours, and what AWS's images compile when they start by themselves.
HOSTNAME_SHIMS: Tuple[str, ...] = ("/opt/slipway/lib/libslipway-hostname.so", "/libchangehostname.so")
SMDDP_PORT = 7592
AGENT_MODULE = "slipway_driver.mpi_agent"
HOST_MODULE = "slipway_driver.mpi_host"


def find_mpirun(path: str) -> str:
    """The absolute name of mpirun. Raises DriverError (77) without one."""
    found = shutil.which("mpirun", path=path + os.pathsep + INSTALLED)
    if found is None:
        why = "distribution.launcher: mpi needs mpirun on the image's PATH, got none; use torchrun or another image"
        raise DriverError(ENVIRONMENT, why)
    return found


def split_options(text: str) -> List[str]:
    """`mpiOptions` as words; quotes group, nothing is expanded. Raises DriverError (77) for a quote that is not closed."""
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
    """`processes` ranks on each host that trains, filled host by host in their order. The options of the run file come last."""
    hosts = cluster.training_hosts
    words = [mpirun, "--host", ",".join("%s:%d" % (host, processes) for host in hosts), "-np", str(processes * len(hosts))]
    words += ["--allow-run-as-root", "--leave-session-attached", "-wdir", "/", "--bind-to", "none", "--map-by", "slot"]
    settings = {
        # Every driver starts its own host's part; the job needs neither sshd nor keys.
        "plm_rsh_agent": "%s -B -u -m %s" % (python, AGENT_MODULE),
        "plm_rsh_no_tree_spawn": "1",
        "plm_rsh_num_concurrent": str(max(len(hosts), 1)),
        "pml": "ob1",
        "btl": "^openib",
        "btl_vader_single_copy_mechanism": "none",
        "orte_abort_on_non_zero_status": "1",
    }
    if has_shim:
        # Every host then knows its own name: names are compared, not looked up, so that hosts may even share a machine.
        settings["if_base_do_not_resolve"] = "1"
    if interface:
        settings.update({"btl_tcp_if_include": interface, "oob_tcp_if_include": interface})
    for name, value in settings.items():
        words += ["-mca", name, value]
    return words + list(options) + list(command)


def smddp_environment(cluster: Cluster, address: str) -> Dict[str, str]:
    """What SageMaker's data parallel library reads when it runs under mpirun."""
    if len(cluster.training_hosts) == 1:
        return {"SMDATAPARALLEL_USE_SINGLENODE": "1", "SAGEMAKER_INSTANCE_TYPE": cluster.instance_type}
    return {
        "SMDATAPARALLEL_USE_HOMOGENEOUS": "1",
        "SMDATAPARALLEL_SERVER_ADDR": address,
        "SMDATAPARALLEL_SERVER_PORT": str(SMDDP_PORT),
        "SAGEMAKER_INSTANCE_TYPE": cluster.instance_type,
    }


def under_mpi4py(script: Sequence[str], has_mpi4py: bool) -> List[str]:
    """A Python program under `-m mpi4py`, so that an exception in one rank ends all of them; others as they are."""
    words = list(script)
    if not has_mpi4py or words[1:2] != ["-u"]:
        return words
    return words[:2] + ["-m", "mpi4py"] + words[2:]


def smddprun(path: str) -> List[str]:
    """The starter of SMDDP in front of the program, where the image has it."""
    found = shutil.which("smddprun", path=path)
    return [found] if found else []


def shim_environment(inherited: Mapping[str, str]) -> Tuple[Dict[str, str], str]:
    """LD_PRELOAD with the hostname shim, and a log line when there is none: MPI may then take all hosts for one.

    SLIPWAY_HOSTNAME_SHIM names one that lies elsewhere in the image.
    """
    own = inherited.get("SLIPWAY_HOSTNAME_SHIM")
    candidates = ((own,) if own else ()) + HOSTNAME_SHIMS
    found = next((name for name in candidates if Path(name).is_file()), None)
    if found is None:
        return {}, "no hostname shim in the image (%s): hosts are told apart by their addresses only" % ", ".join(candidates)
    before = inherited.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": found + (":" + before if before else "")}, ""
