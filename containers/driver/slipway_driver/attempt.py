"""Collects and checks everything that one host needs before its ranks start."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from slipway_driver import sm_environment as sm
from slipway_driver.cluster import Cluster, read_cluster
from slipway_driver.code import prepare_code, refuse_windows_text
from slipway_driver.compile_cache import CompileCache, compile_cache_of
from slipway_driver.dumps import trace_variables
from slipway_driver.expected_bandwidth import EXPECTED, GIB
from slipway_driver.health_gate import EarlyAnswers
from slipway_driver.hosts import own_address, read_hosts_file, wait_for_hosts
from slipway_driver.inventory import inventory
from slipway_driver.job import BUILTIN_MODULES, Job, read_job
from slipway_driver.launchers import rank_command, script_command, torchrun_command
from slipway_driver.log import hide
from slipway_driver.mpi_launch import mpi_environment, mpi_host_command, mpi_words
from slipway_driver.paths import Paths
from slipway_driver.process_environment import (
    check_seconds,
    compose,
    efa_changes,
    efa_devices,
    interface_exists,
    master_port,
    python_path,
    rendezvous_variables,
    slipway_variables,
)  # fmt: skip
from slipway_driver.progress_formats import terminal_variables
from slipway_driver.ray_cluster.launch import ray_command_of, ray_environment
from slipway_driver.requirements import install_requirements
from slipway_driver.resume_argument import resume_words
from slipway_driver.run_secrets import read_secrets

#: Offset from the job's rendezvous port: the job's rendezvous may start on one host before the probe has ended on another.
PROBE_PORT_OFFSET = 3
PROBE_VARIABLE = "SLIPWAY_PROBE_SECONDS"
DRIVER_FOLDER = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Attempt:
    """Everything needed to start the ranks of this host, any number of times (restart in place)."""

    job: Job
    cluster: Cluster
    paths: Paths
    environ: Mapping[str, str]
    command_of: Callable[[Path], List[str]]
    #: Command of a rank for the fork server, which starts the ranks in place of torchrun; None for all other programs.
    forked_command: Optional[List[str]]
    #: Command of the all-reduce probe under the same launcher; None if the ranks do not communicate.
    probe_command_of: Optional[Callable[[Path], List[str]]]
    folder: Path
    #: Folder for the flight recorder traces and stacks that explain a hang.
    dumps: Path
    local_ranks: int
    devices: int
    hardware: Mapping[str, Any]
    #: Compiled code of earlier attempts; None = not kept.
    compile_cache: Optional[CompileCache]
    #: Answers for the health check, which run since the start; None without a check.
    early: Optional[EarlyAnswers]
    #: Returns the same attempt for a set and order of training hosts, and another checkpoint to resume from.
    on: Callable[[Cluster, str], Attempt]


def prepare(paths: Paths, inherited: Mapping[str, str], started_at: float, log: Callable[[str], None]) -> Attempt:
    """Reads and checks all files written by the service and the control plane. Raises DriverError with the reason."""
    job = read_job(paths.channel("job") / "job.json")
    job = replace(job, arguments=tuple(paths.localised(word) for word in job.arguments))
    cluster = read_cluster(paths.config / "resourceconfig.json", job.training_groups, job.spare_instances)
    # Before any other code runs, including pip.
    inherited = {**inherited, **read_secrets(job.secrets, inherited, hide, log)} if job.secrets else inherited
    return _Host(job, paths, inherited, started_at, log, cluster).attempt(cluster, paths.localised(job.resume_from))


class _Host:
    """What this host has whichever hosts train. Creating it prepares the host."""

    def __init__(
        self, job: Job, paths: Paths, inherited: Mapping[str, str], started_at: float, log: Callable[[str], None], cluster: Cluster
    ) -> None:
        self.job, self.paths, self.inherited, self.started_at, self.log = job, paths, inherited, started_at, log
        self.early = EarlyAnswers() if job.health_check != "off" else None
        self.dumps = paths.base / "slipway-dumps"
        self._prepare_folders()
        self.devices = efa_devices()
        self.hardware = inventory(self.devices, cluster.instance_type)
        self.compile_cache = compile_cache_of(job, paths, inherited, self.hardware)
        if self.compile_cache:
            self.compile_cache.begin()
        known, before = read_hosts_file(paths.config / "hosts"), time.monotonic()
        addresses = wait_for_hosts(cluster.hosts, known, log)
        log("all %d hosts resolve after %.1f s" % (len(cluster.hosts), time.monotonic() - before))
        # On SageMaker, scripts expect the host name. The hosts of the sandbox exist only in its hosts file, so their addresses are used.
        self.reached_at = {host: known.get(host, host) for host in cluster.hosts}
        self.address = own_address(cluster.current_host, addresses, known)
        self.job_name = inherited.get("TRAINING_JOB_NAME") or job.run_id
        #: Whether all hosts are processes on one machine (sandbox).
        self.shared_machine = bool(known)
        self.port = master_port(self.job_name, self.shared_machine)

    def _prepare_folders(self) -> None:
        """Unpacks the user's code, installs its requirements, and creates the folders that scripts write to."""
        job, paths = self.job, self.paths
        if job.builtin_module is None:
            prepare_code(paths.channel("code"), job.code_digest, paths.code)
            refuse_windows_text(job.entry_point, paths.code)
            if job.requirements:
                wheels = paths.channel("wheels")
                install_requirements(paths.code, job.requirements, job.requirements_digest, wheels, self.inherited, self.log)
        for folder in (paths.model, paths.output_data, paths.code, self.dumps):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                self.log("a folder of the job cannot be created: %s" % error)

    def attempt(self, cluster: Cluster, resume_from: str) -> Attempt:
        """The attempt with these training hosts, which go on from a checkpoint."""
        job, environ = self.job, self._environ(cluster, resume_from)
        distributed = job.launcher in ("torchrun", "mpi", "ray") and cluster.takes_part
        with_ray = job.launcher == "ray" and distributed
        script = self._script(resume_from)
        if with_ray:
            command_of = ray_command_of(job, cluster, self.hardware, script)
        else:
            command_of = self._command_of(job.launcher, cluster, 0, environ, script)
        # Ray itself does not start ranks, so the probe runs under torchrun.
        measures, launcher = self._probe(cluster, environ), "torchrun" if with_ray else job.launcher
        return Attempt(
            job=job,
            cluster=cluster,
            paths=self.paths,
            environ=environ,
            command_of=command_of,
            forked_command=script if self._is_forked(cluster) else None,
            probe_command_of=self._command_of(launcher, cluster, PROBE_PORT_OFFSET, environ, measures) if distributed else None,
            folder=self.paths.code,
            dumps=self.dumps,
            # With Ray one process on each host writes a record: the entry point on the first host, the driver's Ray process on the others.
            local_ranks=job.processes_per_host if distributed and not with_ray else 1,
            devices=self.devices,
            hardware=self.hardware,
            compile_cache=self.compile_cache,
            early=self.early,
            on=self.attempt,
        )

    def _environ(self, cluster: Cluster, resume_from: str) -> Dict[str, str]:
        job, paths, inherited, seen = self.job, self.paths, self.inherited, cluster.as_scripts_see_it()
        master = self.reached_at[cluster.master]
        mpi, mpi_complaint = mpi_environment(job, cluster, paths, inherited, master)
        has_interface = interface_exists(cluster.network_interface)
        efa, unset = efa_changes(cluster, self.devices, has_interface, inherited, job.user_pinned, job.efa_variables)
        places = {name: self.reached_at[name] for name in seen.hosts}
        layers = [
            self._sm_variables(seen),
            rendezvous_variables(self.address, self.port, master, places, self.shared_machine),
            {**slipway_variables(job, paths, self.started_at), "SLIPWAY_RESUME_FROM": resume_from},
            {"PYTHONPATH": python_path(DRIVER_FOLDER, paths.code, inherited.get("PYTHONPATH", ""))},
            self._usual_settings(),
            terminal_variables(job.progress_format, inherited),
            self.compile_cache.variables if self.compile_cache else {},
            {name: value for name, value in trace_variables(self.dumps).items() if name not in inherited},
            mpi,
            ray_environment(job, cluster, inherited, master, self.port),
            efa,
        ]
        environ, lines = compose(inherited, layers, unset, job.env)
        check_seconds(environ)
        for line in [*lines, *([mpi_complaint] if mpi_complaint else [])]:
            self.log(line)
        return environ

    def _usual_settings(self) -> Dict[str, str]:
        """OMP_NUM_THREADS on hosts without accelerators: the CPU cores divided by the number of ranks. Otherwise the launcher's default of
        1 applies. Ray sets the variable for each worker according to its requested CPUs.

        With accelerators and the built-in trainer, expandable segments, which reduce fragmentation when tensor sizes vary
        (https://docs.pytorch.org/docs/stable/notes/cuda.html, "expandable_segments", 2026-11-22).
        """
        job, inherited, allocator = self.job, self.inherited, ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        if not self.hardware.get("gpus"):
            own = "OMP_NUM_THREADS" in inherited or job.launcher in ("script", "ray")
            return {} if own else {"OMP_NUM_THREADS": str(max(1, int(self.hardware["cpus"]) // job.processes_per_host))}
        own = job.builtin_module is None or any(name in inherited or name in job.env for name in allocator)
        return {} if own else {allocator[0]: "expandable_segments:True"}

    def _sm_variables(self, cluster: Cluster) -> Dict[str, str]:
        job, paths, hardware = self.job, self.paths, self.hardware
        counts = {"num_cpus": hardware["cpus"], "num_gpus": hardware["gpus"], "num_neurons": hardware["neurons"]}
        given = sm.read_json(paths.config / "hyperparameters.json")
        if paths.processing:
            channels: Dict[str, Any] = {entry.name: {} for entry in sorted(paths.data.iterdir()) if entry.is_dir()}
        else:
            channels = sm.read_json(paths.config / "inputdataconfig.json")
        facts = sm.training_environment(cluster, paths, given, channels, job.entry_point, job.training_groups, counts, self.job_name)
        return sm.sm_variables(facts, cluster, paths, job.arguments)

    def _script(self, resume_from: str) -> List[str]:
        job = self.job
        words, issue = resume_words(job.progress_format, job.entry_point, job.arguments, self.paths.code, resume_from)
        if words or issue:
            self.log("resume from %s: %s" % (resume_from, issue or "with %s" % " ".join(words)))
        return script_command(job.entry_point, job.builtin_module, [*job.arguments, *words])

    def _command_of(
        self, launcher: str, cluster: Cluster, port_offset: int, environ: Mapping[str, str], script: Sequence[str]
    ) -> Callable[[Path], List[str]]:
        """The command that starts `script` on this host with a launcher, as a function of the state folder."""
        job, master = self.job, self.reached_at[cluster.master]
        if launcher == "mpi" and cluster.takes_part:
            mpi = mpi_words(job, cluster, script, environ)
            return lambda state: mpi_host_command(str(state), mpi)
        if launcher == "torchrun" and cluster.takes_part:
            processes, port = job.processes_per_host, self.port + port_offset
            return lambda state: torchrun_command(cluster, processes, master, port, rank_command(str(state), script))
        return lambda state: rank_command(str(state), script)

    def _probe(self, cluster: Cluster, environ: Mapping[str, str]) -> List[str]:
        expected = EXPECTED.get(cluster.instance_type)
        size = str(expected.size_bytes if expected else GIB)
        return [sys.executable, "-u", "-m", "slipway_driver.probe_rank", environ.get(PROBE_VARIABLE, "0"), size]

    def _is_forked(self, cluster: Cluster) -> bool:
        """Whether the ranks of this host, also those that it will have as a spare, are those of the built-in trainer without a library that
        has a launcher of its own."""
        job, trains = self.job, cluster.takes_part or cluster.idle
        return trains and job.builtin_module == BUILTIN_MODULES["builtin"] and job.launcher == "torchrun" and job.library in ("fsdp", "ddp")


def new_state_folder() -> Path:
    """Creates an empty folder in which the ranks of one start write their process ids and records; in memory if the disk is full."""
    try:
        return Path(tempfile.mkdtemp(prefix="slipway-ranks-"))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="slipway-ranks-", dir="/dev/shm"))
