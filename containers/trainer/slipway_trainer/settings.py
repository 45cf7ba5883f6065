"""The settings of a run: job.json and the trainer's arguments, validated."""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from slipway_trainer.architecture import Architecture, read_architecture
from slipway_trainer.architecture_parts import read_fields
from slipway_trainer.arguments import parse_arguments
from slipway_trainer.checkpoint.committed import Rollback
from slipway_trainer.checkpoint.interval import History
from slipway_trainer.checkpoint.memory_plan import MemoryPlan, read_memory_plan
from slipway_trainer.exits import InvalidRun, Limit, or_list, refused
from slipway_trainer.mixture import Phase, read_mixture
from slipway_trainer.order import Skip, read_skips

LIBRARIES = ("fsdp", "ddp", "smp-v2", "deepspeed")
PRECISIONS = ("bf16", "fp32", "fp8")
FP8_RECIPES = ("tensorwise", "rowwise")
OBJECTIVES = ("pretrain", "sft", "dpo")
QUANTIZATIONS = ("nf4",)


@dataclass(frozen=True)
class Lora:
    """`training.lora` of the run file: the rank, alpha (the scale times the rank), and the names of the adapted layers."""

    rank: int
    alpha: float
    targets: tuple[str, ...]
    #: `nf4`: the frozen weights of linear layers have four bits per element; None = they keep their precision.
    quantization: str | None = None


@dataclass(frozen=True)
class Training:
    """The `training` section. Batch sizes are numbers of sequences."""

    sequence_length: int
    micro_batch_size: int
    global_batch_size: int
    steps: int
    precision: str = "bf16"
    activation_checkpointing: str = "none"
    activation_offload: bool = False
    seed: int = 1234
    lora: Lora | None = None
    #: Skipped ranges of the data.
    skips: tuple[Skip, ...] = ()
    #: `pretrain`, `sft` or `dpo`. For `dpo`, batch sizes are numbers of pairs.
    objective: str = "pretrain"
    #: Attention between documents in a row of text is masked, as it always is for `sft`.
    document_mask: bool = False
    #: The channels of the samples, by step; empty = the channel of --data-channel.
    mixture: tuple[Phase, ...] = ()
    #: Scaling granularity with precision fp8; None = tensorwise.
    fp8_recipe: str | None = None

    @property
    def quantization(self) -> str | None:
        """The format of the frozen weights, see `Lora`."""
        return self.lora.quantization if self.lora is not None else None

    @property
    def counts_targets(self) -> bool:
        """Whether the number of targets differs between rows, so that the loss is the mean over the targets of the global batch."""
        return self.objective == "sft" or self.document_mask

    @property
    def tokens_per_step(self) -> int:
        """Number of positions in all rows of a step, including padding."""
        return self.global_batch_size * self.sequence_length * (2 if self.objective == "dpo" else 1)


@dataclass(frozen=True)
class Checkpoints:
    """Destination and retention of checkpoints. `uri`: empty = no checkpoints."""

    uri: str
    resume_from: str
    keep: int
    interval_minutes: float | None
    #: Folder on this host for copies of objects written to S3; empty = none.
    local_copies: str
    history: History
    #: Restarts in place of this attempt, which `history` includes.
    restarts: float
    #: Whether spare hosts replace broken ones.
    spares: bool
    #: Discarded checkpoints; None = none.
    rollback: Rollback | None
    #: Copies of the state in memory; None = none.
    memory: MemoryPlan | None = None


@dataclass(frozen=True)
class Parallel:
    """Degrees of parallelism; data parallelism uses the ranks that the others leave."""

    #: None, here or in `shard`: not given; resolve_layout in layout.py determines it.
    replicate: int | None = None
    tensor: int = 1
    context: int = 1
    expert: int = 1
    shard: int | None = None
    reshard_after_forward: bool = True
    #: None = according to `compiles` in limits.py.
    compile: bool | None = None
    #: Gradients are reduced only after the last micro-batch of a step: less communication, more memory.
    no_sync: bool = False


@dataclass(frozen=True)
class RunSettings:
    """All settings of a run."""

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
    #: File that exists once a hand-over was requested; empty = none.
    hand_over_file: str
    #: Start of the attempt in epoch seconds; restarts in place do not change it.
    started_at: float | None
    job: Mapping[str, Any] = field(repr=False)


def _count(section: str, values: Mapping[str, Any], issues: list[str], key: str, default: int | None = None) -> int:
    """A whole number of at least 1 in a section of job.json; records errors."""
    found = values.get(key, default)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        issues.append(f"{section}.{key}: must be a whole number of at least 1, got {found}; state it in the run file")
        return 1
    return found


def _steps(training: Mapping[str, Any], tokens_per_step: int, issues: list[str]) -> int:
    """`steps`, or the number of steps for `totalTokens`, rounded up."""
    if training.get("steps") is not None:
        return _count("training", training, issues, "steps")
    total = training.get("totalTokens")
    if not isinstance(total, (int, float)) or total <= 0:
        issues.append("training.steps: must be given, or totalTokens; got neither")
        return 1
    return max(1, -(-int(total) // tokens_per_step))


def _training(raw: Mapping[str, Any], issues: list[str]) -> Training:
    count, lora = partial(_count, "training", raw, issues), raw.get("lora")
    found = read_fields(
        Training,
        raw,
        sequence_length=count("sequenceLength"),
        micro_batch_size=count("microBatchSize", 1),
        global_batch_size=count("globalBatchSize"),
        steps=1,
        lora=Lora(int(lora["rank"]), float(lora["alpha"]), tuple(lora["targets"]), lora.get("quantization")) if lora else None,
        skips=read_skips(raw.get("skips") or [], issues),
        mixture=read_mixture(raw.get("mixture") or [], issues),
    )
    return replace(found, steps=_steps(raw, found.tokens_per_step, issues))


def _parallel(library: str, parameters: Mapping[str, Any]) -> Parallel:
    """Degrees of the run file. DDP is a replicated model without sharding."""
    shard = 1 if library == "ddp" else parameters.get("shard_degree")
    replicate = parameters.get("replicate_degree")
    if library == "smp-v2" and int(parameters.get("hybrid_shard_degree", 0)) > 0:
        # SMP also shards over context parallel ranks, and replicates over the ranks that tensor x expert x shard leave.
        degrees = [int(parameters.get(f"{name}_degree", 1)) for name in ("hybrid_shard", "expert_parallel", "context_parallel")]
        shard, replicate = degrees[0] * degrees[1] // degrees[2], None
    return Parallel(
        replicate=int(replicate) if replicate is not None else None,
        tensor=int(parameters.get("tensor_parallel_degree", 1)),
        context=int(parameters.get("context_parallel_degree", 1)),
        expert=int(parameters.get("expert_parallel_degree", 1)),
        shard=int(shard) if shard is not None else None,
        reshard_after_forward=bool(parameters.get("reshard_after_forward", True)),
        # With deepspeed, this is a section of its own configuration.
        compile=bool(parameters["compile"]) if "compile" in parameters and library in ("fsdp", "ddp") else None,
        no_sync=bool(parameters.get("no_sync", False)),
    )


def _checkpoints(job: Mapping[str, Any], environ: Mapping[str, str]) -> Checkpoints:
    raw = job.get("checkpoints") or {}
    interval = raw.get("intervalMinutes", "auto")
    wanted = raw.get("mode", "none") != "none"
    restarts = float(environ.get("SLIPWAY_RESTART", 0))
    # Failures of previous attempts, and restarts in place of this attempt. The duration of this attempt is added while it runs.
    before, rollback = raw.get("history") or {}, raw.get("rollback")
    return Checkpoints(
        uri=environ.get("SLIPWAY_CHECKPOINT_URI", raw.get("uri") or "") if wanted else "",
        resume_from=environ.get("SLIPWAY_RESUME_FROM", raw.get("resumeFrom") or ""),
        keep=int(raw.get("keep", 3)),
        interval_minutes=None if interval == "auto" else float(interval),
        local_copies=environ.get("SLIPWAY_LOCAL_COPIES", ""),
        history=History(float(before.get("failures", 0)) + restarts, float(before.get("nodeDays", 0))),
        restarts=restarts,
        spares=int(job.get("spareInstances", 0)) > 0,
        rollback=Rollback(int(rollback["toStep"]), int(rollback["beforeAttempt"])) if rollback else None,
        memory=read_memory_plan(raw.get("memory"), environ),
    )


def resolve_settings(job: Mapping[str, Any], words: Sequence[str], environ: Mapping[str, str]) -> RunSettings:
    """Returns the validated settings. Raises InvalidRun with all issues."""
    issues: list[str] = []
    distribution = job.get("distribution") or {}
    settings = RunSettings(
        architecture=read_architecture(job.get("model"), partial(_count, "model", job.get("model") or {}, issues), issues),
        training=_training(job.get("training") or {}, issues),
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
    issues += refused(_unsupported(settings))
    if issues:
        raise InvalidRun(*issues)
    return settings


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    return float(environ[name]) if environ.get(name) else None


def _unsupported(settings: RunSettings) -> Iterator[Limit]:
    """Settings that are valid in a run file but not supported by this trainer. limits.py has those that depend on the backend."""
    training, library, recipe = settings.training, settings.library, settings.training.fp8_recipe
    must = "be fsdp, smp-v2 or deepspeed for the built-in trainer"
    yield library not in LIBRARIES, "distribution.library", must, library, "use fsdp, or custom code"
    yield training.objective not in OBJECTIVES, "training.objective", f"be {or_list(OBJECTIVES)}", training.objective, "correct it"
    must = "be tensorwise or rowwise for the built-in trainer"
    yield recipe not in (None, *FP8_RECIPES), "training.fp8Recipe", must, recipe, "use rowwise, or custom code"
    is_unused = recipe is not None and training.precision != "fp8"
    yield is_unused, "training.fp8Recipe", "be used with training.precision fp8", recipe, "set training.precision: fp8, or remove it"
    must = f"be {QUANTIZATIONS[0]} for the built-in trainer"
    quantization = training.quantization
    yield quantization not in (None, *QUANTIZATIONS), "training.lora.quantization", must, quantization, "use nf4, or remove it"
    no_smddp = settings.collectives == "smddp" and library == "ddp"
    yield no_smddp, "distribution.collectives", "be nccl or gloo for ddp in the built-in trainer", "smddp", "use fsdp"


def read_settings(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> RunSettings:
    """Reads the settings from the job file in SLIPWAY_JOB_FILE. Raises InvalidRun."""
    path = environ.get("SLIPWAY_JOB_FILE")
    if not path:
        raise InvalidRun("environment variable SLIPWAY_JOB_FILE is not set; the driver must set it")
    try:
        job = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRun(f"{path}: must be a readable job file ({error}); start the trainer with the driver, which writes it") from error
    return resolve_settings(job, words, environ)
