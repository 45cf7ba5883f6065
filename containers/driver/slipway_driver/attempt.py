"""Collects and checks everything that one host needs before its ranks start."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from slipway_driver import sm_environment as sm
from slipway_driver.cluster import Cluster, read_cluster
from slipway_driver.code import prepare_code, refuse_windows_text
from slipway_driver.compile_cache import CompileCache, compile_cache_of
from slipway_driver.dumps import trace_variables
from slipway_driver.efa_environment import efa_changes, efa_devices, interface_exists
from slipway_driver.expected_bandwidth import GIB, expected_for
from slipway_driver.health_gate import EarlyAnswers
from slipway_driver.hidden import hide
from slipway_driver.hosts import own_address, read_hosts_file, wait_for_hosts
from slipway_driver.inventory import inventory
from slipway_driver.job import BUILTIN_MODULES, Job, read_job
from slipway_driver.launchers import rank_command, script_command, torchrun_command
from slipway_driver.mpi_launch import mpi_environment, mpi_host_command, mpi_words
from slipway_driver.paths import Paths
from slipway_driver.process_environment import (
    check_seconds,
    compose,
    master_port,
    python_path,
    rendezvous_variables,
    slipway_variables,
)
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


def _python_environment(job: Job, paths: Paths, inherited: Mapping[str, str]) -> Dict[str, str]:
    return {"PYTHONPATH": python_path(DRIVER_FOLDER, paths.code, inherited.get("PYTHONPATH", ""))}


def _threads(job: Job, hardware: Mapping[str, Any], inherited: Mapping[str, str]) -> Dict[str, str]:
    """OMP_NUM_THREADS on hosts without accelerators: the CPU cores divided by the number of ranks. Otherwise the launcher's default of 1
    applies. Ray sets the variable for each worker according to its requested CPUs."""
    if "OMP_NUM_THREADS" in inherited or hardware.get("gpus") or job.launcher in ("script", "ray"):
        return {}
    return {"OMP_NUM_THREADS": str(max(1, int(hardware["cpus"]) // job.processes_per_host))}


def _allocator(job: Job, hardware: Mapping[str, Any], inherited: Mapping[str, str]) -> Dict[str, str]:
    """Allocator setting of the built-in trainer: expandable segments reduce fragmentation when tensor sizes vary
    (https://docs.pytorch.org/docs/stable/notes/cuda.html, "expandable_segments", 2026-11-22)."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    if job.builtin_module is None or not hardware.get("gpus") or any(name in inherited or name in job.env for name in names):
        return {}
    return {names[0]: "expandable_segments:True"}


def _script(host: _Host, resume_from: str) -> List[str]:
    job = host.job
    words, issue = resume_words(job.progress_format, job.entry_point, job.arguments, host.paths.code, resume_from)
    if words or issue:
        host.log("resume from %s: %s" % (resume_from, issue or "with %s" % " ".join(words)))
    return script_command(job.entry_point, job.builtin_module, [*job.arguments, *words])


def _command_of(
    job: Job, cluster: Cluster, master: str, port: int, environ: Mapping[str, str], script: List[str]
) -> Callable[[Path], List[str]]:
    """The command that starts `script` on this host with the job's launcher, as a function of the state folder."""
    mpi = mpi_words(job, cluster, script, environ) if job.launcher == "mpi" and cluster.takes_part else []

    def command_of(state: Path) -> List[str]:
        if not _distributed(job, cluster):
            return rank_command(str(state), script)
        if job.launcher == "mpi":
            return mpi_host_command(str(state), mpi)
        return torchrun_command(cluster, job.processes_per_host, master, port, rank_command(str(state), script))

    return command_of


def _distributed(job: Job, cluster: Cluster) -> bool:
    return job.launcher in ("torchrun", "mpi", "ray") and cluster.takes_part


def _is_forked(job: Job, cluster: Cluster) -> bool:
    """Whether the ranks of this host, also those that it will have as a spare, are those of the built-in trainer without a library that has
    a launcher of its own."""
    trains = cluster.takes_part or cluster.idle
    return trains and job.builtin_module == BUILTIN_MODULES["builtin"] and job.launcher == "torchrun" and job.library in ("fsdp", "ddp")


def _probe_command_of(job: Job, cluster: Cluster, master: str, port: int, environ: Mapping[str, str]) -> Callable[[Path], List[str]]:
    expected, seconds = expected_for(cluster.instance_type), environ.get(PROBE_VARIABLE, "0")
    size = str(expected.size_bytes if expected else GIB)
    script = [sys.executable, "-u", "-m", "slipway_driver.probe_rank", seconds, size]
    # Ray itself does not start ranks.
    started = replace(job, launcher="torchrun") if job.launcher == "ray" else job
    return _command_of(started, cluster, master, port + PROBE_PORT_OFFSET, environ, script)


def _prepare_folders(job: Job, paths: Paths, inherited: Mapping[str, str], log: Callable[[str], None]) -> None:
    """Unpacks the user's code, installs its requirements, and creates the folders that scripts write to."""
    if job.builtin_module is None:
        prepare_code(paths.channel("code"), job.code_digest, paths.code)
        refuse_windows_text(job.entry_point, paths.code)
        if job.requirements:
            install_requirements(paths.code, job.requirements, job.requirements_digest, paths.channel("wheels"), inherited, log)
    for folder in (paths.model, paths.output_data, paths.code, _dumps_of(paths)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log("a folder of the job cannot be created: %s" % error)


def _dumps_of(paths: Paths) -> Path:
    return paths.base / "slipway-dumps"


def prepare(paths: Paths, inherited: Mapping[str, str], started_at: float, log: Callable[[str], None]) -> Attempt:
    """Reads and checks all files written by the service and the control plane. Raises DriverError with the reason."""
    job_file = paths.channel("job") / "job.json"
    job = read_job(job_file)
    job = replace(job, arguments=tuple(paths.localised(word) for word in job.arguments))
    cluster = read_cluster(paths.config / "resourceconfig.json", job.training_groups, job.spare_instances)
    # Before any other code runs, including pip.
    inherited = {**inherited, **read_secrets(job.secrets, inherited, hide, log)} if job.secrets else inherited
    early = EarlyAnswers() if job.health_check != "off" else None
    _prepare_folders(job, paths, inherited, log)
    devices = efa_devices()
    hardware = inventory(devices, cluster.instance_type)
    cache = compile_cache_of(job, paths, inherited, hardware)
    if cache:
        cache.begin()
    known = read_hosts_file(paths.config / "hosts")
    before = time.monotonic()
    addresses = wait_for_hosts(cluster.hosts, known, log)
    log("all %d hosts resolve after %.1f s" % (len(cluster.hosts), time.monotonic() - before))
    job_name = inherited.get("TRAINING_JOB_NAME") or job.run_id
    host = _Host(
        job=job,
        job_file=job_file,
        paths=paths,
        inherited=inherited,
        started_at=started_at,
        log=log,
        # On SageMaker, scripts expect the host name. The hosts of the sandbox exist only in its hosts file, so their addresses are used.
        reached_at={host: known.get(host, host) for host in cluster.hosts},
        address=own_address(cluster.current_host, addresses, known),
        job_name=job_name,
        port=master_port(job_name, shared_machine=bool(known)),
        shared_machine=bool(known),
        devices=devices,
        hardware=hardware,
        compile_cache=cache,
        early=early,
    )
    return _attempt(host, cluster, paths.localised(job.resume_from))


@dataclass(frozen=True)
class _Host:
    """Values of this host that do not depend on the set of training hosts."""

    job: Job
    job_file: Path
    paths: Paths
    inherited: Mapping[str, str]
    started_at: float
    log: Callable[[str], None]
    reached_at: Mapping[str, str]
    address: str
    job_name: str
    port: int
    #: Whether all hosts are processes on one machine (sandbox).
    shared_machine: bool
    devices: int
    hardware: Mapping[str, Any]
    compile_cache: Optional[CompileCache]
    early: Optional[EarlyAnswers]


def _attempt(host: _Host, cluster: Cluster, resume_from: str) -> Attempt:
    job, paths, inherited, port = host.job, host.paths, host.inherited, host.port
    master = host.reached_at[cluster.master]
    seen = cluster.as_scripts_see_it()
    mpi, mpi_complaint = mpi_environment(job, cluster, paths, inherited, master)
    environ, lines = compose(
        inherited,
        [
            _sm_variables(job, seen, paths, host.hardware, host.job_name),
            rendezvous_variables(host.address, port, master, {name: host.reached_at[name] for name in seen.hosts}, host.shared_machine),
            {**slipway_variables(job, paths, host.job_file, host.started_at), "SLIPWAY_RESUME_FROM": resume_from},
            _python_environment(job, paths, inherited),
            _threads(job, host.hardware, inherited),
            _allocator(job, host.hardware, inherited),
            terminal_variables(job.progress_format, inherited),
            host.compile_cache.variables if host.compile_cache else {},
            {name: value for name, value in trace_variables(_dumps_of(paths)).items() if name not in inherited},
            mpi,
            ray_environment(job, cluster, inherited, master, port),
        ],
        efa_changes(
            cluster,
            host.devices,
            interface_exists(cluster.network_interface),
            inherited,
            job.user_pinned,
            job.efa_variables,
        ),
        job.env,
    )
    check_seconds(environ)
    for line in [*lines, *mpi_complaint]:
        host.log(line)
    distributed, with_ray = _distributed(job, cluster), job.launcher == "ray" and cluster.takes_part
    script = _script(host, resume_from)
    start = ray_command_of(job, cluster, host.hardware, script) if with_ray else _command_of(job, cluster, master, port, environ, script)
    return Attempt(
        job=job,
        cluster=cluster,
        paths=paths,
        environ=environ,
        command_of=start,
        forked_command=script if _is_forked(job, cluster) else None,
        probe_command_of=_probe_command_of(job, cluster, master, port, environ) if distributed else None,
        folder=paths.code,
        dumps=_dumps_of(paths),
        # With Ray one process on each host writes a record: the entry point on the first host, the driver's Ray process on the others.
        local_ranks=job.processes_per_host if distributed and not with_ray else 1,
        devices=host.devices,
        hardware=host.hardware,
        compile_cache=host.compile_cache,
        early=host.early,
        on=lambda other, checkpoint: _attempt(host, other, checkpoint),
    )


def _sm_variables(job: Job, cluster: Cluster, paths: Paths, hardware: Mapping[str, Any], job_name: str) -> Dict[str, str]:
    counts = {"num_cpus": hardware["cpus"], "num_gpus": hardware["gpus"], "num_neurons": hardware["neurons"]}
    given = sm.read_json(paths.config / "hyperparameters.json")
    facts = sm.training_environment(cluster, paths, given, _channels(paths), job.entry_point, job.training_groups, counts, job_name)
    return sm.sm_variables(facts, cluster, paths, job.arguments)


def _channels(paths: Paths) -> Dict[str, Any]:
    """The channels from inputdataconfig.json; for processing jobs, the existing input folders."""
    if not paths.processing:
        return sm.read_json(paths.config / "inputdataconfig.json")
    return {entry.name: {} for entry in sorted(paths.data.iterdir()) if entry.is_dir()}


def new_state_folder() -> Path:
    """Creates an empty folder in which the ranks of one start write their process ids and records; in memory if the disk is full."""
    try:
        return Path(tempfile.mkdtemp(prefix="slipway-ranks-"))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="slipway-ranks-", dir="/dev/shm"))
