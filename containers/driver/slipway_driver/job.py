"""Parses job.json of the `job` channel: the driver's input for one attempt (docs/reference/runtime.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.tables import PROGRESS_FORMATS

LAUNCHERS = ("torchrun", "mpi", "ray", "script")
BUILTIN_MODULES = {
    "builtin": "slipway_trainer",
    "builtin-tokenize": "slipway_trainer.tokenize",
    "builtin-fetch": "slipway_trainer.fetch",
}


@dataclass(frozen=True)
class Job:
    """The job of one attempt. Field names follow job.json; values that the driver only passes on are in `raw`."""

    run_id: str
    attempt: int
    launcher: str
    processes_per_host: int
    entry_point: str
    arguments: Tuple[str, ...]
    env: Mapping[str, str]
    user_pinned: Tuple[str, ...]
    #: Name of a variable to the secret or parameter that contains its value.
    secrets: Mapping[str, str]
    efa: str
    efa_variables: str
    training_groups: Tuple[str, ...]
    mpi_options: str
    library: str
    collectives: str
    parameters: Mapping[str, Any]
    checkpoint_mode: str
    checkpoint_uri: str
    resume_from: str
    #: What a program of a user writes last into a checkpoint; None if that is not known.
    committed_marker: Optional[str]
    step_regex: Optional[str]
    loss_regex: Optional[str]
    progress_format: str
    startup_minutes: float
    silence_minutes: float
    code_digest: Optional[str]
    requirements: Optional[str]
    requirements_digest: Optional[str]
    max_runtime_seconds: Optional[int]
    heartbeat_uri: Optional[str]
    hand_over_uri: Optional[str]
    compile_cache_uri: Optional[str]
    restarts_in_place: int
    restart_secret: str
    spare_instances: int
    health_check: str
    raw: Mapping[str, Any]

    @property
    def builtin_module(self) -> Optional[str]:
        """The module of a built-in program; None for the user's own code."""
        return BUILTIN_MODULES.get(self.entry_point)


_KINDS = {str: "a string", int: "a whole number", float: "a number", list: "a list", dict: "an object"}


class _Reader:
    """Reads typed values from job.json and collects all issues, so that they are reported together."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.issues: List[str] = []

    def value(self, path: str, kind: type, default: Any = None, required: bool = False) -> Any:
        found: Any = self.raw
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if found is None:
            if required:
                self.issues.append("job.json %s: must be %s, got nothing" % (path, _KINDS[kind]))
            return default
        accepted = (int, float) if kind is float else kind
        if not isinstance(found, accepted) or (isinstance(found, bool) and kind in (int, float)):
            self.issues.append("job.json %s: must be %s, got %s" % (path, _KINDS[kind], json.dumps(found)[:80]))
            return default
        return found

    def choice(self, path: str, allowed: Tuple[str, ...], default: str) -> str:
        found = self.value(path, str, default)
        if found not in allowed:
            self.issues.append("job.json %s: must be one of %s, got %s" % (path, ", ".join(allowed), found))
        return found

    def strings(self, path: str) -> Tuple[str, ...]:
        found = self.value(path, list, [])
        if any(not isinstance(item, str) for item in found):
            self.issues.append("job.json %s: must contain only strings" % path)
            return ()
        return tuple(found)

    def variables(self, path: str) -> Dict[str, str]:
        found = self.value(path, dict, {})
        if any(not isinstance(item, str) for item in found.values()):
            self.issues.append("job.json %s: must contain only strings" % path)
            return {}
        return dict(found)


def parse_job(raw: Mapping[str, Any]) -> Job:
    """Returns the validated job. Raises DriverError (77) with every invalid field."""
    read = _Reader(raw)
    if raw.get("schema") != 1:
        read.issues.append("job.json schema: must be 1, got %s; use a driver of the same version" % raw.get("schema"))
    job = Job(
        run_id=read.value("runId", str, "", required=True),
        attempt=read.value("attempt", int, 0, required=True),
        launcher=read.choice("launcher", LAUNCHERS, "script"),
        processes_per_host=read.value("processesPerHost", int, 1),
        entry_point=read.value("entryPoint", str, "", required=True),
        arguments=read.strings("arguments"),
        env=read.variables("env"),
        user_pinned=read.strings("userPinned"),
        secrets=read.variables("secrets"),
        efa=read.choice("efa", ("required", "preferred", "off"), "preferred"),
        efa_variables=read.choice("efaVariables", ("auto", "guide-2023"), "auto"),
        training_groups=read.strings("trainingGroups"),
        mpi_options=read.value("mpiOptions", str, ""),
        library=read.value("distribution.library", str, "custom"),
        collectives=read.value("distribution.collectives", str, ""),
        parameters=read.value("distribution.parameters", dict, {}),
        checkpoint_mode=read.value("checkpoints.mode", str, "none"),
        checkpoint_uri=read.value("checkpoints.uri", str, ""),
        resume_from=read.value("checkpoints.resumeFrom", str, ""),
        committed_marker=read.value("checkpoints.committedMarker", str),
        step_regex=read.value("progress.stepRegex", str),
        loss_regex=read.value("progress.lossRegex", str),
        progress_format=read.choice("progress.format", PROGRESS_FORMATS, "none"),
        startup_minutes=read.value("progress.startupMinutes", float, 30),
        silence_minutes=read.value("progress.silenceMinutes", float, 20),
        code_digest=read.value("digests.code", str),
        requirements=read.value("requirements", str),
        requirements_digest=read.value("digests.requirements", str),
        max_runtime_seconds=read.value("maxRuntimeSeconds", int),
        heartbeat_uri=read.value("heartbeatUri", str),
        hand_over_uri=read.value("handOverUri", str),
        compile_cache_uri=read.value("compileCacheUri", str),
        restarts_in_place=read.value("restartsInPlace", int, 0),
        restart_secret=read.value("restartSecret", str, ""),
        spare_instances=read.value("spareInstances", int, 0),
        health_check=read.choice("healthCheck", ("off", "quick", "full"), "off"),
        raw=raw,
    )
    if job.processes_per_host < 1:
        read.issues.append("job.json processesPerHost: must be at least 1, got %d" % job.processes_per_host)
    # The hosts of mpirun and Ray are fixed when they start.
    if job.spare_instances < 0 or (job.spare_instances > 0 and job.launcher in ("mpi", "ray")):
        read.issues.append(
            "job.json spareInstances: must be 0 or more, and 0 with mpi and ray, got %d with launcher %s"
            % (job.spare_instances, job.launcher)
        )
    if job.builtin_module is not None and job.requirements:
        read.issues.append("job.json requirements: must not be given with entryPoint %s, which has no code archive" % job.entry_point)
    if read.issues:
        raise DriverError(ENVIRONMENT, "; ".join(read.issues))
    return job


def read_job(path: Path) -> Job:
    """Reads the job from a file. Raises DriverError (77) if the file is missing or invalid."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DriverError(ENVIRONMENT, "%s: must be the job file that the control plane wrote (%s)" % (path, error))
    if not isinstance(raw, dict):
        raise DriverError(ENVIRONMENT, "%s: must contain one JSON object" % path)
    return parse_job(raw)
