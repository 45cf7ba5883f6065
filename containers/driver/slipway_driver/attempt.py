"""Collects and checks everything that one host needs before its ranks start."""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from slipway_driver import process_environment as variables
from slipway_driver.aws_call import read_secrets
from slipway_driver.cluster import Cluster, own_address, read_cluster, read_hosts_file, wait_for_hosts
from slipway_driver.code import install_requirements, prepare_code, refuse_windows_text
from slipway_driver.compile_cache import compile_cache_of
from slipway_driver.dumps import trace_variables
from slipway_driver.expected_bandwidth import EXPECTED, GIB
from slipway_driver.health_gate import EarlyAnswers
from slipway_driver.inventory import inventory
from slipway_driver.job import Paths, read_job
from slipway_driver.launchers import rank_command, script_command, torchrun_command
from slipway_driver.log import log
from slipway_driver.mpi import HOST_MODULE, mpi_environment, mpi_words
from slipway_driver.newest_checkpoint import resume_words
from slipway_driver.progress_formats import terminal_variables
from slipway_driver.ray_cluster.launch import ray_command_of, ray_environment

#: Offset from the job's rendezvous port: the job's rendezvous may start on one host before the probe has ended on another.
PROBE_PORT_OFFSET = 3
PROBE_VARIABLE = "SLIPWAY_PROBE_SECONDS"
DRIVER_FOLDER = Path(__file__).resolve().parent.parent


class Attempt:
    """Everything needed to start the ranks of this host, any number of times (restart in place). Creating it reads and checks all files
    written by the service and the control plane, and prepares the host. Raises DriverError with the reason."""

    def __init__(self, paths: Paths, inherited: Mapping[str, str], started_at: float) -> None:
        job = read_job(paths.channel("job") / "job.json")
        self.job = job = replace(job, arguments=tuple(paths.localised(word) for word in job.arguments))
        cluster = read_cluster(paths.config / "resourceconfig.json", job.training_groups, job.spare_instances)
        self.paths, self.folder, self._started_at = paths, paths.code, started_at
        # Before any other code runs, including pip.
        self._inherited = {**inherited, **read_secrets(job.secrets, inherited)} if job.secrets else inherited
        #: Answers for the health check, which run since the start; None without a check.
        self.early = EarlyAnswers() if job.health_check != "off" else None
        #: Folder for the flight recorder traces and stacks that explain a hang.
        self.dumps = paths.base / "slipway-dumps"
        self._prepare_folders()
        self.devices = variables.efa_devices()
        self.hardware = inventory(self.devices, cluster.instance_type)
        #: Compiled code of earlier attempts; None = not kept.
        self.compile_cache = compile_cache_of(job, paths, self._inherited, self.hardware)
        if self.compile_cache:
            self.compile_cache.begin()
        known, before = read_hosts_file(paths.config / "hosts"), time.monotonic()
        addresses = wait_for_hosts(cluster.hosts, known)
        log("all %d hosts resolve after %.1f s" % (len(cluster.hosts), time.monotonic() - before))
        # On SageMaker, scripts expect the host name. The hosts of the sandbox exist only in its hosts file, so their addresses are used.
        self._reached_at = {host: known.get(host, host) for host in cluster.hosts}
        self._address = own_address(cluster.current_host, addresses, known)
        self._job_name = self._inherited.get("TRAINING_JOB_NAME") or job.run_id
        #: Whether all hosts are processes on one machine (sandbox).
        self._shared_machine = bool(known)
        self._port = variables.master_port(self._job_name, self._shared_machine)
        self._train_on(cluster, paths.localised(job.resume_from))

    def on(self, hosts: Sequence[str], resume_from: str, number: int) -> Attempt:
        """The same attempt for the start with this number: with a set and order of training hosts, and a checkpoint to resume from."""
        other = copy.copy(self)
        if tuple(hosts) != self.cluster.training_hosts or resume_from != self.environ["SLIPWAY_RESUME_FROM"]:
            other._train_on(self.cluster.with_training(hosts), resume_from)
        other.environ = dict(other.environ, SLIPWAY_RESTART=str(number))
        return other

    def _prepare_folders(self) -> None:
        """Unpacks the user's code, installs its requirements, and creates the folders that scripts write to."""
        job, paths = self.job, self.paths
        if job.builtin_module is None:
            prepare_code(paths.channel("code"), job.code_digest, paths.code)
            refuse_windows_text(job.entry_point, paths.code)
            if job.requirements:
                install_requirements(paths.code, job.requirements, paths.channel("wheels"), self._inherited)
        for folder in (paths.model, paths.output_data, paths.code, self.dumps):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                log("a folder of the job cannot be created: %s" % error)

    def _train_on(self, cluster: Cluster, resume_from: str) -> None:
        job = self.job
        self.cluster, self.environ = cluster, self._environ(cluster, resume_from)
        distributed = job.launcher in ("torchrun", "mpi", "ray") and cluster.takes_part
        with_ray = job.launcher == "ray" and distributed
        script = self._script(resume_from)
        if with_ray:
            self.command_of = ray_command_of(job, cluster, self.hardware, script)
        else:
            self.command_of = self._command_of(job.launcher, 0, script)
        #: Command of a rank for the fork server, which starts the ranks in place of torchrun: those of the built-in trainer without a
        #: library that has a launcher of its own, also if this host is a spare. None for all other programs.
        self.forked_command: Optional[List[str]] = None
        if job.entry_point == "builtin" and job.launcher == "torchrun" and job.library in ("fsdp", "ddp"):
            self.forked_command = script if cluster.takes_part or cluster.idle else None
        #: Command of the all-reduce probe; None if the ranks do not communicate. Ray itself does not start ranks.
        self.probe_command_of: Optional[Callable[[Path], List[str]]] = None
        if distributed:
            self.probe_command_of = self._command_of("torchrun" if with_ray else job.launcher, PROBE_PORT_OFFSET, self._probe())
        # With Ray one process on each host writes a record: the entry point on the first host, the driver's Ray process on the others.
        self.local_ranks = job.processes_per_host if distributed and not with_ray else 1

    def _environ(self, cluster: Cluster, resume_from: str) -> Dict[str, str]:
        job, paths, inherited, seen = self.job, self.paths, self._inherited, cluster.as_scripts_see_it()
        master = self._reached_at[cluster.master]
        has_interface = variables.interface_exists(cluster.network_interface)
        efa, unset = variables.efa_changes(cluster, self.devices, has_interface, inherited, job.user_pinned, job.efa_variables)
        layers = [
            variables.sm_variables(job, seen, paths, self.hardware, self._job_name),
            self._rendezvous(seen, master),
            {**variables.slipway_variables(job, paths, self._started_at), "SLIPWAY_RESUME_FROM": resume_from},
            {"PYTHONPATH": variables.python_path(DRIVER_FOLDER, paths.code, inherited.get("PYTHONPATH", ""))},
            self._usual_settings(),
            terminal_variables(job.progress_format, inherited),
            self.compile_cache.variables if self.compile_cache else {},
            {name: value for name, value in trace_variables(self.dumps).items() if name not in inherited},
            mpi_environment(job, cluster, paths, inherited, master),
            ray_environment(job, cluster, inherited, master, self._port),
            efa,
        ]
        environ = variables.compose(inherited, layers, unset, job.env)
        variables.check_seconds(environ)
        return environ

    def _rendezvous(self, cluster: Cluster, master: str) -> Dict[str, str]:
        """MASTER_ADDR, MASTER_PORT and the names of SDK v3 for them. Servers listen on SLIPWAY_BIND_ADDRESS. It is empty (all interfaces)
        because a host's name may resolve to an address outside its container; hosts that share one machine use their own address."""
        port, reached_at = str(self._port), {name: self._reached_at[name] for name in cluster.hosts}
        return {
            **{"MASTER_ADDR": master, "MASTER_PORT": port, "SM_MASTER_ADDR": master, "SM_MASTER_PORT": port},
            "SLIPWAY_HOST_ADDRESS": self._address,
            "SLIPWAY_BIND_ADDRESS": self._address if self._shared_machine else "",
            "SLIPWAY_HOSTS": json.dumps(reached_at, separators=(",", ":")),
        }

    def _usual_settings(self) -> Dict[str, str]:
        """OMP_NUM_THREADS on hosts without accelerators: the CPU cores divided by the number of ranks. Otherwise the launcher's default of
        1 applies. Ray sets the variable for each worker according to its requested CPUs.

        With accelerators and the built-in trainer, expandable segments, which reduce fragmentation when tensor sizes vary
        (https://docs.pytorch.org/docs/stable/notes/cuda.html, "expandable_segments", 2026-11-22).
        """
        job, inherited, allocator = self.job, self._inherited, ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        if not self.hardware.get("gpus"):
            own = "OMP_NUM_THREADS" in inherited or job.launcher in ("script", "ray")
            return {} if own else {"OMP_NUM_THREADS": str(max(1, int(self.hardware["cpus"]) // job.processes_per_host))}
        own = job.builtin_module is None or any(name in inherited or name in job.env for name in allocator)
        return {} if own else {allocator[0]: "expandable_segments:True"}

    def _script(self, resume_from: str) -> List[str]:
        job = self.job
        words = resume_words(job.progress_format, job.entry_point, job.arguments, self.paths.code, resume_from)
        return script_command(job.entry_point, job.builtin_module, [*job.arguments, *words])

    def _command_of(self, launcher: str, port_offset: int, script: Sequence[str]) -> Callable[[Path], List[str]]:
        """The command that starts `script` on this host with a launcher, as a function of the state folder."""
        job, cluster, master = self.job, self.cluster, self._reached_at[self.cluster.master]
        if launcher == "mpi" and cluster.takes_part:
            mpi = mpi_words(job, cluster, script, self.environ)
            return lambda state: [sys.executable, "-B", "-u", "-m", HOST_MODULE, str(state), *mpi]
        if launcher == "torchrun" and cluster.takes_part:
            processes, port = job.processes_per_host, self._port + port_offset
            return lambda state: torchrun_command(cluster, processes, master, port, rank_command(str(state), script))
        return lambda state: rank_command(str(state), script)

    def _probe(self) -> List[str]:
        expected = EXPECTED.get(self.cluster.instance_type)
        size = str(expected.size_bytes if expected else GIB)
        return [sys.executable, "-u", "-m", "slipway_driver.health_rank", self.environ.get(PROBE_VARIABLE, "0"), size]


def new_state_folder() -> Path:
    """Creates an empty folder in which the ranks of one start write their process ids and records; in memory if the disk is full."""
    try:
        return Path(tempfile.mkdtemp(prefix="slipway-ranks-"))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="slipway-ranks-", dir="/dev/shm"))
