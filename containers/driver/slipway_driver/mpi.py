"""The MPI command of a host, and the host's part of an MPI start: `python -m slipway_driver.mpi STATE_FOLDER [MPIRUN WORDS...]`.

On the first host it is replaced by mpirun (exec). On every other host it waits for mpirun's agent, which must know the job's secret, starts
Open MPI's daemon in this host's own environment, and ends with it. Ranks write to the log of their own host instead of sending all output
to the first host. `python -m slipway_driver.mpi agent HOST WORDS...` replaces ssh for mpirun: it lets the driver of HOST run the command
WORDS.

Options follow those of SageMaker's own toolkit: https://github.com/aws/sagemaker-training-toolkit (mpi.py and smdataparallel.py of 5.1.0,
2026-11-20), which starts processes-per-host times hosts ranks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

from slipway_driver.cluster import Cluster, read_hosts_file
from slipway_driver.exit_codes import TRY_AGAIN, DriverError, shell_code
from slipway_driver.job import Job, Paths, paths_of, read_job
from slipway_driver.launchers import rank_command
from slipway_driver.log import log
from slipway_driver.peer_channel import PeerChannel, PeerLost, connect_patiently, serve
from slipway_driver.process_environment import interface_exists
from slipway_driver.rank import FOLDER_VARIABLE, LOG_VARIABLE, STATE_VARIABLE, die_with_parent
from slipway_driver.rank_session import send_group

#: Where the EFA installer puts Open MPI; the image's PATH takes precedence.
INSTALLED = "/opt/amazon/openmpi/bin"
#: Preloaded libraries that override gethostname(): ours, and the one that AWS images compile at startup.
HOSTNAME_SHIMS: Tuple[str, ...] = ("/opt/slipway/lib/libslipway-hostname.so", "/libchangehostname.so")
SMDDP_PORT = 7592
HOST_MODULE = "slipway_driver.mpi"


def mpirun_words(cluster: Cluster, processes: int, options: str, command: Sequence[str], environ: Mapping[str, str]) -> List[str]:
    """Starts `processes` ranks on each training host, numbered host by host. The options of the run file come last, split like a shell
    does, without expansions. Raises DriverError (77) for an unclosed quote, and if mpirun is not installed."""
    hosts, interface = cluster.training_hosts, cluster.network_interface
    mpirun = shutil.which("mpirun", path=environ.get("PATH", "") + os.pathsep + INSTALLED)
    if mpirun is None:
        raise DriverError("distribution.launcher: mpi needs mpirun on the image's PATH, got none; use torchrun or another image")
    try:
        given = shlex.split(options)
    except ValueError as error:
        raise DriverError("distribution.mpiOptions: must be words of a command line, got %s (%s)" % (options, error))
    words = [mpirun, "--host", ",".join("%s:%d" % (host, processes) for host in hosts), "-np", str(processes * len(hosts))]
    words += ["--allow-run-as-root", "--leave-session-attached", "-wdir", "/", "--bind-to", "none", "--map-by", "slot"]
    settings = {
        # Every driver starts its host's daemon, so the job needs neither sshd nor keys.
        "plm_rsh_agent": "%s -B -u -m %s agent" % (sys.executable, HOST_MODULE),
        "plm_rsh_no_tree_spawn": "1",
        "plm_rsh_num_concurrent": str(len(hosts)),
        "pml": "ob1",
        "btl": "^openib",
        "btl_vader_single_copy_mechanism": "none",
        "orte_abort_on_non_zero_status": "1",
    }
    if "LD_PRELOAD" in environ:
        # With the shim every host knows its own name. Names are compared without DNS, so that hosts may even share one machine.
        settings["if_base_do_not_resolve"] = "1"
    if interface_exists(interface):
        settings.update({"btl_tcp_if_include": interface, "oob_tcp_if_include": interface})
    for name, value in settings.items():
        words += ["-mca", name, value]
    return [*words, *given, *command]


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


def shim_environment(inherited: Mapping[str, str]) -> Dict[str, str]:
    """LD_PRELOAD with the hostname shim. Logs if there is none, because MPI may then treat all hosts as one.

    SLIPWAY_HOSTNAME_SHIM sets another path of the shim in the image.
    """
    own = inherited.get("SLIPWAY_HOSTNAME_SHIM")
    candidates = ((own,) if own else ()) + HOSTNAME_SHIMS
    found = next((name for name in candidates if Path(name).is_file()), None)
    if found is None:
        log("no hostname shim in the image (%s): hosts are distinguished only by their addresses" % ", ".join(candidates))
        return {}
    before = inherited.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": found + (":" + before if before else "")}


def mpi_environment(job: Job, cluster: Cluster, paths: Paths, inherited: Mapping[str, str], master: str) -> Dict[str, str]:
    """Variables of an MPI start."""
    if job.launcher != "mpi" or not cluster.takes_part:
        return {}
    smddp = smddp_environment(cluster, master) if job.collectives == "smddp" else {}
    return {**shim_environment(inherited), FOLDER_VARIABLE: str(paths.code), **smddp}


def mpi_words(job: Job, cluster: Cluster, script: Sequence[str], environ: Mapping[str, str]) -> List[str]:
    """The mpirun command on the first host; empty on the others, which wait for mpirun."""
    if cluster.rank != 0:
        return []
    smddprun = shutil.which("smddprun", path=environ.get("PATH", "")) if job.collectives == "smddp" else None
    program = [*([smddprun] if smddprun else []), *under_mpi4py(script, importlib.util.find_spec("mpi4py") is not None)]
    return mpirun_words(cluster, job.processes_per_host, job.mpi_options, rank_command("-", program), environ)


#: Follows the port of the rendezvous (MASTER_PORT) and that of the driver protocol (+ 1).
PORT_OFFSET = 2
ORDER_SECONDS = 900.0


def secret_of(environ: Mapping[str, str]) -> str:
    """The job's secret, from the driver's job file."""
    return read_job(Path(environ["SLIPWAY_JOB_FILE"])).restart_secret


def worker_port(environ: Mapping[str, str]) -> int:
    """The port on which a host waits for mpirun's agents. Raises KeyError without MASTER_PORT."""
    return int(environ["MASTER_PORT"]) + PORT_OFFSET


def _end_with(channel: PeerChannel, pid: int) -> None:
    """Ends the daemon when mpirun's agent has ended, because nothing else ends it."""
    with contextlib.suppress(PeerLost, ValueError):
        channel.receive()
    send_group(pid, signal.SIGTERM)


def run_daemon(environ: Mapping[str, str]) -> int:
    """Runs the command of mpirun's agent on this host and returns its exit code."""
    agents: "queue.Queue[PeerChannel]" = queue.Queue()
    with socket.create_server((environ.get("SLIPWAY_BIND_ADDRESS", ""), worker_port(environ))) as listening:
        serve(listening, secret_of(environ), agents.put)
        try:
            channel = agents.get(timeout=ORDER_SECONDS)
            words = [str(word) for word in channel.receive()[1]]
        except (queue.Empty, PeerLost, ValueError) as error:
            log("mpi: mpirun did not give an order within %d s: %s" % (ORDER_SECONDS, error))
            return TRY_AGAIN
    # Open MPI writes the command for a remote shell, as it would be passed to ssh.
    daemon = subprocess.Popen(
        ["/bin/sh", "-c", " ".join(words)], env=dict(environ), stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent
    )
    threading.Thread(target=_end_with, args=(channel, daemon.pid), daemon=True).start()
    code = daemon.wait()
    with contextlib.suppress(PeerLost):
        channel.send("code", code)
    return shell_code(code)


def run_on(host: str, words: List[str], environ: Mapping[str, str]) -> int:
    """Runs `words` on a host and returns the exit code there; 1 if the connection is lost."""
    die_with_parent()
    address = read_hosts_file(paths_of(environ).config / "hosts").get(host, host)
    try:
        channel = connect_patiently(address, worker_port(environ), "mpirun", secret_of(environ))
        channel.send("run", words)
        return shell_code(int(channel.receive()[1]))
    except (PeerLost, ValueError) as error:
        print("mpi: lost %s: %s" % (host, error), file=sys.stderr, flush=True)
        return 1


def main(arguments: List[str]) -> int:
    """Runs this host's part, or the agent. Returns the exit code."""
    environ = dict(os.environ)
    if arguments[0] == "agent":
        return run_on(arguments[1], arguments[2:], environ)
    environ[STATE_VARIABLE] = arguments[0]
    environ[LOG_VARIABLE] = "/proc/%d/fd/1" % os.getpid()
    if len(arguments) > 1:
        os.execve(arguments[1], arguments[1:], environ)
    return run_daemon(environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
