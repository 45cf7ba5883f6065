"""job.json of the `job` channel, the driver's input for one attempt (docs/reference/runtime.md), and the paths of the SageMaker container
contract, for training and processing jobs.

Sources of the paths: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/build-your-own-processing-container.html (2026-11-20).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from slipway_driver.exit_codes import DriverError
from slipway_driver.tables import PROGRESS_FORMATS

LAUNCHERS = ("torchrun", "mpi", "ray", "script")
BUILTIN_MODULES = {
    "builtin": "slipway_trainer",
    "builtin-tokenize": "slipway_trainer.tokenize",
    "builtin-fetch": "slipway_trainer.fetch",
}
_KINDS = {str: "a string", int: "a whole number", float: "a number", list: "a list", dict: "an object"}


def _at(
    path: str, kind: type = str, default: Any = None, allowed: Sequence[str] = (), required: bool = False, strings: bool = False
) -> Any:
    """A field from job.json. `allowed`: all of its values; `strings`: the list or object contains only strings."""
    return field(metadata=dict(path=path, kind=kind, default=default, allowed=allowed, required=required, strings=strings))


@dataclass(frozen=True)
class Job:
    """The job of one attempt. Values that the driver only passes on are in `raw`."""

    run_id: str = _at("runId", required=True)
    attempt: int = _at("attempt", int, required=True)
    launcher: str = _at("launcher", default="script", allowed=LAUNCHERS)
    processes_per_host: int = _at("processesPerHost", int, 1)
    entry_point: str = _at("entryPoint", required=True)
    arguments: Tuple[str, ...] = _at("arguments", list, (), strings=True)
    env: Mapping[str, str] = _at("env", dict, {}, strings=True)
    user_pinned: Tuple[str, ...] = _at("userPinned", list, (), strings=True)
    #: Name of a variable to the secret or parameter that contains its value.
    secrets: Mapping[str, str] = _at("secrets", dict, {}, strings=True)
    efa: str = _at("efa", default="preferred", allowed=("required", "preferred", "off"))
    efa_variables: str = _at("efaVariables", default="auto", allowed=("auto", "guide-2023"))
    training_groups: Tuple[str, ...] = _at("trainingGroups", list, (), strings=True)
    mpi_options: str = _at("mpiOptions", default="")
    library: str = _at("distribution.library", default="custom")
    collectives: str = _at("distribution.collectives", default="")
    parameters: Mapping[str, Any] = _at("distribution.parameters", dict, {})
    checkpoint_mode: str = _at("checkpoints.mode", default="none")
    checkpoint_uri: str = _at("checkpoints.uri", default="")
    resume_from: str = _at("checkpoints.resumeFrom", default="")
    #: What a program of a user writes last into a checkpoint; None if that is not known.
    committed_marker: Optional[str] = _at("checkpoints.committedMarker")
    step_regex: Optional[str] = _at("progress.stepRegex")
    loss_regex: Optional[str] = _at("progress.lossRegex")
    progress_format: str = _at("progress.format", default="none", allowed=PROGRESS_FORMATS)
    startup_minutes: float = _at("progress.startupMinutes", float, 30)
    silence_minutes: float = _at("progress.silenceMinutes", float, 20)
    code_digest: Optional[str] = _at("digests.code")
    requirements: Optional[str] = _at("requirements")
    max_runtime_seconds: Optional[int] = _at("maxRuntimeSeconds", int)
    heartbeat_uri: Optional[str] = _at("heartbeatUri")
    hand_over_uri: Optional[str] = _at("handOverUri")
    compile_cache_uri: Optional[str] = _at("compileCacheUri")
    restarts_in_place: int = _at("restartsInPlace", int, 0)
    restart_secret: str = _at("restartSecret", default="")
    spare_instances: int = _at("spareInstances", int, 0)
    health_check: str = _at("healthCheck", default="off", allowed=("off", "quick", "full"))
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def builtin_module(self) -> Optional[str]:
        """The module of a built-in program; None for the user's own code."""
        return BUILTIN_MODULES.get(self.entry_point)


def _value(raw: Mapping[str, Any], at: Mapping[str, Any], issues: List[str]) -> Any:
    """The value of a field. What is wrong with it is added to `issues`."""
    path, kind, found = at["path"], at["kind"], raw
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None  # type: ignore[assignment]
    if found is None and not at["required"]:
        return at["default"]
    must = _KINDS[kind] if not at["allowed"] else "one of %s" % ", ".join(at["allowed"])
    fits = isinstance(found, (int, float) if kind is float else kind) and not (isinstance(found, bool) and kind in (int, float))
    if not fits or (at["allowed"] and found not in at["allowed"]):
        got = found if isinstance(found, str) and at["allowed"] else "nothing" if found is None else json.dumps(found)[:80]
        issues.append("job.json %s: must be %s, got %s" % (path, must, got))
    elif at["strings"] and any(not isinstance(item, str) for item in (found.values() if kind is dict else found)):
        issues.append("job.json %s: must contain only strings" % path)
    else:
        return tuple(found) if kind is list else found
    return kind() if at["default"] is None else at["default"]


def parse_job(raw: Mapping[str, Any]) -> Job:
    """Returns the validated job. Raises DriverError (77) with every invalid field."""
    issues: List[str] = []
    if raw.get("schema") != 1:
        issues.append("job.json schema: must be 1, got %s; use a driver of the same version" % raw.get("schema"))
    job = Job(**{one.name: _value(raw, one.metadata, issues) for one in fields(Job) if one.name != "raw"}, raw=raw)
    if job.processes_per_host < 1:
        issues.append("job.json processesPerHost: must be at least 1, got %d" % job.processes_per_host)
    # The hosts of mpirun and Ray are fixed when they start.
    if job.spare_instances < 0 or (job.spare_instances > 0 and job.launcher in ("mpi", "ray")):
        issues.append(
            "job.json spareInstances: must be 0 or more, and 0 with mpi and ray, got %d with launcher %s"
            % (job.spare_instances, job.launcher)
        )
    if job.builtin_module is not None and job.requirements:
        issues.append("job.json requirements: must not be given with entryPoint %s, which has no code archive" % job.entry_point)
    if issues:
        raise DriverError("; ".join(issues))
    return job


def read_object(path: Path) -> Dict[str, Any]:
    """Reads a JSON file that the service or the control plane wrote. Raises DriverError (77) if it is missing or invalid."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DriverError("%s: must be a JSON object (%s)" % (path, error))


def read_job(path: Path) -> Job:
    """Reads the job from a file. Raises DriverError (77) if the file is missing or invalid."""
    return parse_job(read_object(path))


DEFAULT_BASE = "/opt/ml"


class Paths:
    """Folders of one instance. `base` is /opt/ml on SageMaker and one folder per instance in the sandbox."""

    def __init__(self, base: Path, processing: bool) -> None:
        self.base, self.processing = base, processing
        #: The service's config files, such as resourceconfig.json.
        self.config = base / ("config" if processing else "input/config")
        #: Parent folder of the channels.
        self.data = base / ("processing/input" if processing else "input/data")
        #: The files that the service reads when the job ends, and that it uploads as the job's output and as the model.
        self.output, self.model = base / "output", base / "model"
        self.output_data = base / ("processing/output" if processing else "output/data")
        #: File whose text becomes FailureReason of a training job, or ExitMessage of a processing job.
        self.failure = self.output / ("message" if processing else "failure")
        #: The user's code, unpacked.
        self.code = base / "code"
        #: File that exists once a hand-over of the attempt was requested.
        self.hand_over = base / "slipway-hand-over"

    def channel(self, name: str) -> Path:
        """Folder of one channel."""
        return self.data / name

    def localised(self, uri: str) -> str:
        """`uri` with a leading /opt/ml replaced by the base folder of this instance."""
        if uri == DEFAULT_BASE or uri.startswith(DEFAULT_BASE + "/"):
            return str(self.base) + uri[len(DEFAULT_BASE) :]
        return uri


def paths_of(environ: Optional[Mapping[str, str]] = None) -> Paths:
    """The paths of this container, from SAGEMAKER_BASE_DIR (default /opt/ml) and the type of its config files."""
    base = Path((os.environ if environ is None else environ).get("SAGEMAKER_BASE_DIR") or DEFAULT_BASE)
    return Paths(base=base, processing=(base / "config" / "processingjobconfig.json").exists())
