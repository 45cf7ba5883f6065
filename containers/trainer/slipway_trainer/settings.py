"""What to train and how: job.json plus the trainer's own arguments, checked once."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway_trainer.architecture import Architecture, read_architecture
from slipway_trainer.arguments import parse_arguments
from slipway_trainer.checkpoint.interval import History
from slipway_trainer.checkpoint.rollback import Rollback
from slipway_trainer.exits import Settings
from slipway_trainer.mixture import Phase, read_mixture
from slipway_trainer.skips import Skip, read_skips

LIBRARIES = ("fsdp", "ddp", "smp-v2", "deepspeed")
PRECISIONS = ("bf16", "fp32", "fp8")
FP8_RECIPES = ("tensorwise", "rowwise")
OBJECTIVES = ("pretrain", "sft", "dpo")


@dataclass(frozen=True)
class Lora:
    """`training.lora` of the run file: rank, scale times rank, and the names of the adapted projections."""

    rank: int
    alpha: float
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Training:
    """The `training` section. Batch sizes count sequences."""

    sequence_length: int
    micro_batch_size: int
    global_batch_size: int
    steps: int
    precision: str
    activation_checkpointing: str
    activation_offload: bool
    seed: int
    lora: Lora | None
    #: Windows of the data that are left out.
    skips: tuple[Skip, ...] = ()
    #: `pretrain`, `sft` or `dpo`. Batch sizes of `dpo` count pairs.
    objective: str = "pretrain"
    #: Documents of text in one row do not see each other, as those of `sft` never do.
    document_mask: bool = False
    #: Which channels samples come from, by step; empty = the one that --data-channel names.
    mixture: tuple[Phase, ...] = ()
    #: What shares a scale with precision fp8; None = a tensor.
    fp8_recipe: str | None = None

    @property
    def counts_targets(self) -> bool:
        """Whether rows have different numbers of targets: the loss is then the mean over those of the global batch."""
        return self.objective == "sft" or self.document_mask

    @property
    def tokens_per_step(self) -> int:
        """Positions of all rows of a step, padding included."""
        return _tokens_per_step(self.objective, self.global_batch_size, self.sequence_length)


def _tokens_per_step(objective: str, batch: int, length: int) -> int:
    return batch * length * (2 if objective == "dpo" else 1)


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints go and how many stay. `uri` empty = none are written."""

    uri: str
    resume_from: str
    keep: int
    interval_minutes: float | None
    #: Folder on this host that keeps copies of what is written to S3; empty = none.
    local_copies: str
    history: History
    #: Checkpoints that no longer count; None = all do.
    rollback: Rollback | None


@dataclass(frozen=True)
class Parallel:
    """Degrees of parallelism; data parallelism takes what the others leave."""

    #: None, here or in `shard`: not given; layout.py says what it becomes.
    replicate: int | None = None
    tensor: int = 1
    context: int = 1
    expert: int = 1
    shard: int | None = None
    reshard_after_forward: bool = True
    #: None = where it pays; backend_choice.py says where.
    compile: bool | None = None
    #: Gradients of a step's micro-batches stay on their rank, whole, until the last one: less traffic for more memory.
    no_sync: bool = False


@dataclass(frozen=True)
class RunSettings:
    """Everything the trainer knows of its run."""

    architecture: Architecture
    training: Training
    checkpoints: Checkpoints
    parallel: Parallel
    arguments: argparse.Namespace
    library: str
    collectives: str
    weights: str | None
    run_id: str
    attempt: int
    config_hash: str
    code_digest: str | None
    image_uri: str
    deadline: float | None
    #: There once the control plane asks the attempt to save and leave; empty = it never does.
    hand_over_file: str
    #: Epoch seconds of the attempt's start; restarts in place do not change it.
    started_at: float | None
    job: Mapping[str, Any] = field(repr=False)


class _Section:
    """Typed look-ups in one section of job.json that remember what is wrong."""

    def __init__(self, name: str, values: Mapping[str, Any] | None, issues: list[str]) -> None:
        self.name, self.values, self.issues = name, values or {}, issues

    def count(self, key: str, default: int | None = None) -> int:
        found = self.values.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            self.issues.append(f"{self.name}.{key}: must be a whole number of at least 1, got {found}; state it in the run file")
            return 1
        return found


def _steps(section: _Section, tokens_per_step: int, issues: list[str]) -> int:
    """`steps`, or as many as `totalTokens` fill, the last one included."""
    if section.values.get("steps") is not None:
        return section.count("steps")
    total = section.values.get("totalTokens")
    if not isinstance(total, (int, float)) or total <= 0:
        issues.append("training.steps: must be given, or totalTokens; got neither")
        return 1
    return max(1, -(-int(total) // tokens_per_step))


def _training(raw: Mapping[str, Any] | None, issues: list[str]) -> Training:
    section = _Section("training", raw, issues)
    length, batch = section.count("sequenceLength"), section.count("globalBatchSize")
    lora, objective = section.values.get("lora"), str(section.values.get("objective", "pretrain"))
    return Training(
        sequence_length=length,
        micro_batch_size=section.count("microBatchSize", 1),
        global_batch_size=batch,
        steps=_steps(section, _tokens_per_step(objective, batch, length), issues),
        precision=str(section.values.get("precision", "bf16")),
        activation_checkpointing=str(section.values.get("activationCheckpointing", "none")),
        activation_offload=bool(section.values.get("activationOffload", False)),
        seed=int(section.values.get("seed", 1234)),
        lora=Lora(int(lora["rank"]), float(lora["alpha"]), tuple(lora["targets"])) if lora else None,
        skips=read_skips(section.values.get("skips") or [], issues),
        objective=objective,
        document_mask=bool(section.values.get("documentMask", False)),
        mixture=read_mixture(section.values.get("mixture") or [], issues),
        fp8_recipe=section.values.get("fp8Recipe"),
    )


def _parallel(library: str, parameters: Mapping[str, Any]) -> Parallel:
    """Degrees of the run file. Plain data parallelism is a model that is replicated and not sharded."""
    shard = 1 if library == "ddp" else parameters.get("shard_degree")
    replicate = parameters.get("replicate_degree")
    if library == "smp-v2" and int(parameters.get("hybrid_shard_degree", 0)) > 0:
        # SMP shards over context ranks too, and replicates over nothing but copies of tensor x expert x shard ranks.
        degrees = [int(parameters.get(f"{name}_degree", 1)) for name in ("hybrid_shard", "expert_parallel", "context_parallel")]
        shard, replicate = degrees[0] * degrees[1] // degrees[2], None
    return Parallel(
        replicate=int(replicate) if replicate is not None else None,
        tensor=int(parameters.get("tensor_parallel_degree", 1)),
        context=int(parameters.get("context_parallel_degree", 1)),
        expert=int(parameters.get("expert_parallel_degree", 1)),
        shard=int(shard) if shard is not None else None,
        reshard_after_forward=bool(parameters.get("reshard_after_forward", True)),
        compile=bool(parameters["compile"]) if "compile" in parameters else None,
        no_sync=bool(parameters.get("no_sync", False)),
    )


def _checkpoints(job: Mapping[str, Any], environ: Mapping[str, str]) -> Checkpoints:
    raw = job.get("checkpoints") or {}
    interval = raw.get("intervalMinutes", "auto")
    wanted = raw.get("mode", "none") != "none"
    return Checkpoints(
        uri=environ.get("SLIPWAY_CHECKPOINT_URI", raw.get("uri") or "") if wanted else "",
        resume_from=environ.get("SLIPWAY_RESUME_FROM", raw.get("resumeFrom") or ""),
        keep=int(raw.get("keep", 3)),
        interval_minutes=None if interval == "auto" else float(interval),
        local_copies=environ.get("SLIPWAY_LOCAL_COPIES", ""),
        history=_history(raw.get("history") or {}, environ),
        rollback=_rollback(raw.get("rollback")),
    )


def _rollback(raw: Mapping[str, Any] | None) -> Rollback | None:
    return Rollback(int(raw["toStep"]), int(raw["beforeAttempt"])) if raw else None


def _history(before: Mapping[str, Any], environ: Mapping[str, str]) -> History:
    """Failures of earlier attempts, and the restarts in place of this one. The time of this attempt is added while it runs."""
    restarts = float(environ.get("SLIPWAY_RESTART", 0))
    return History(float(before.get("failures", 0)) + restarts, float(before.get("nodeDays", 0)))


def resolve_settings(job: Mapping[str, Any], words: Sequence[str], environ: Mapping[str, str]) -> RunSettings:
    """Checked settings. Raises Settings with every complaint."""
    issues: list[str] = []
    distribution = job.get("distribution") or {}
    settings = RunSettings(
        architecture=read_architecture(job.get("model"), _Section("model", job.get("model"), issues).count, issues),
        training=_training(job.get("training"), issues),
        checkpoints=_checkpoints(job, environ),
        parallel=_parallel(str(distribution.get("library", "fsdp")), distribution.get("parameters") or {}),
        arguments=parse_arguments(words, issues),
        library=str(distribution.get("library", "fsdp")),
        collectives=str(distribution.get("collectives", "auto")),
        weights=job.get("weights"),
        run_id=environ.get("SLIPWAY_RUN_ID", str(job.get("runId", ""))),
        attempt=int(environ.get("SLIPWAY_ATTEMPT", job.get("attempt", 1))),
        config_hash=str(job.get("configHash", "")),
        code_digest=(job.get("digests") or {}).get("code"),
        image_uri=environ.get("SLIPWAY_IMAGE_URI", ""),
        deadline=_seconds(environ, "SLIPWAY_DEADLINE"),
        hand_over_file=environ.get("SLIPWAY_HAND_OVER_FILE", ""),
        started_at=_seconds(environ, "SLIPWAY_STARTED_AT"),
        job=job,
    )
    issues += _unsupported(settings)
    if issues:
        raise Settings(issues)
    return settings


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    return float(environ[name]) if environ.get(name) else None


def _unsupported(settings: RunSettings) -> list[str]:
    """What a run file may say and this trainer cannot do: refused, never ignored."""
    recipe = settings.training.fp8_recipe
    refused = [
        (settings.library not in LIBRARIES, "distribution.library", " or ".join(LIBRARIES), settings.library),
        (settings.training.objective not in OBJECTIVES, "training.objective", " or ".join(OBJECTIVES), settings.training.objective),
        (settings.training.precision not in PRECISIONS, "training.precision", " or ".join(PRECISIONS), settings.training.precision),
        (recipe not in (None, *FP8_RECIPES), "training.fp8Recipe", " or ".join(FP8_RECIPES), recipe),
        (recipe is not None and settings.training.precision != "fp8", "training.fp8Recipe", "left out without precision fp8", recipe),
        (
            settings.arguments.recompute_layers != 1 and settings.training.activation_checkpointing != "full",
            "--recompute-layers",
            "1 without activationCheckpointing full",
            settings.arguments.recompute_layers,
        ),
        (settings.arguments.export_adapter and settings.training.lora is None, "--export-adapter", "left out without lora", "given"),
        (_adapts_experts(settings), "--export-adapter", "left out where training.lora.targets names experts or the router", "given"),
        (settings.collectives == "smddp" and settings.library == "ddp", "distribution.collectives", "nccl or gloo for ddp", "smddp"),
    ]
    return [
        f"{option}: must be {allowed} for the built-in trainer, got {found}; not supported yet"
        for wrong, option, allowed, found in refused
        if wrong
    ]


def _adapts_experts(settings: RunSettings) -> bool:
    """Whether an adapter to export belongs to experts or a router, of which transformers 5 has no linear layers that PEFT could adapt."""
    lora, model = settings.training.lora, settings.architecture
    if not settings.arguments.export_adapter or lora is None:
        return False
    return model.experts > 0 and not {"gate_proj", "up_proj", "down_proj", "router"}.isdisjoint(lora.targets)


def read_settings(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> RunSettings:
    """Settings of the job file that the driver names in SLIPWAY_JOB_FILE."""
    path = environ.get("SLIPWAY_JOB_FILE")
    if not path:
        raise Settings(["environment variable SLIPWAY_JOB_FILE is not set; the driver must set it"])
    try:
        job = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Settings([f"{path}: must be a readable job file ({error})"]) from error
    return resolve_settings(job, words, environ)
