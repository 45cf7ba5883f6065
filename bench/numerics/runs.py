"""Checks of whole runs: 20 steps in every layout beside a plain loop around transformers' model, and their continuation in others."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from models import MIXTURE, TODAY, their_model, whole_model
from one_process import LOGITS, random_tokens
from row import Figure, Row

from fake_world import direct_checkpoints
from plain_loop import plain_history, publish_first_values
from rank_world import events, run_ranks, trainer_job, write_shards

STEPS, SAVED_AT = 20, 10
LOSS, NORM = 1e-5, 1e-4
#: Norms that are farther apart: a single step of this family has a norm of 4.7, and its last digits are as much farther apart.
NORMS_OF_TODAY = {"Qwen 3": 1e-3}
#: A higher one makes two orders of the same sums drift apart within 20 steps.
LEARNING_RATE = "0.002"
#: (name, ranks, changes of the job). Degrees that are not named take the ranks that are left.
DENSE: list[tuple[str, int, dict[str, Any]]] = [
    ("one rank", 1, {}),
    ("one rank, micro-batch of the whole step", 1, {"training": {"microBatchSize": 4}}),
    ("replicated 2 (DDP)", 2, {"library": "ddp"}),
    ("FSDP1 2", 2, {"arguments": ["--backend", "fsdp1"]}),
    ("shard 2", 2, {}),
    ("shard 3", 3, {"training": {"globalBatchSize": 6}}),
    ("shard 4", 4, {}),
    ("replicate 2 x shard 2", 4, {"parameters": {"replicate_degree": 2}}),
    ("shard 2, parameters kept after forward", 2, {"parameters": {"reshard_after_forward": False}}),
    ("shard 2, no_sync", 2, {"parameters": {"no_sync": True}}),
    ("tensor 2", 2, {"parameters": {"tensor_parallel_degree": 2}}),
    ("tensor 2 x shard 2", 4, {"parameters": {"tensor_parallel_degree": 2}}),
    ("tensor 2 x replicate 2", 4, {"parameters": {"tensor_parallel_degree": 2, "replicate_degree": 2}}),
    ("context 2", 2, {"parameters": {"context_parallel_degree": 2}}),
    ("context 4", 4, {"parameters": {"context_parallel_degree": 4}}),
    ("context 2 x shard 2", 4, {"parameters": {"context_parallel_degree": 2}}),
    ("context 2 x tensor 2", 4, {"parameters": {"context_parallel_degree": 2, "tensor_parallel_degree": 2}}),
    ("shard 2, full recomputation", 2, {"training": {"activationCheckpointing": "full"}}),
    ("shard 2, selective recomputation", 2, {"training": {"activationCheckpointing": "selective"}}),
    ("shard 2, loss in four pieces", 2, {"arguments": ["--loss-chunks", "4"]}),
]
EXPERTS: list[tuple[str, int, dict[str, Any]]] = [
    ("experts: shard 2", 2, {}),
    ("expert 2", 2, {"parameters": {"expert_parallel_degree": 2}}),
    ("expert 4", 4, {"parameters": {"expert_parallel_degree": 4}}),
    ("expert 2 x shard 4", 4, {"parameters": {"expert_parallel_degree": 2}}),
    ("expert 2 x replicate 2", 4, {"parameters": {"expert_parallel_degree": 2, "replicate_degree": 2}}),
    ("expert 2 with context 2", 4, {"parameters": {"expert_parallel_degree": 2, "context_parallel_degree": 2}}),
]
#: Families of today, each in layouts that split its blocks in other ways: of dense models, and of mixtures.
DENSE_OF_TODAY = ("shard 2", "tensor 2")
MIXTURES_OF_TODAY = ("experts: shard 2", "expert 2 x shard 4", "tensor 2")
#: What a checkpoint of four ranks continues in.
CONTINUED = ("shard 4", "one rank", "replicated 2 (DDP)", "tensor 2", "context 2", "FSDP1 2")
CONTINUED_EXPERTS = ("expert 2 x shard 4", "expert 4", "experts: shard 2")


def job_of(changes: dict[str, Any], model: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A job of 20 steps. `changes` are a layout's."""
    training = {"steps": STEPS} | changes.get("training", {})
    arguments = ["--learning-rate", LEARNING_RATE, *changes.get("arguments", []), *more.pop("arguments", [])]
    return trainer_job(**(changes | {"training": training, "arguments": arguments, "model": whole_model(model)} | more))


def reference_name(job: dict[str, Any], model: dict[str, Any]) -> str:
    """Jobs with the same model and the same batches have one reference."""
    digest = hashlib.sha256(json.dumps(model, sort_keys=True).encode()).hexdigest()
    return f"transformers {job['training']['globalBatchSize']} {digest[:12]}"


def _saving(folder: Path) -> dict[str, Any]:
    """What a job needs to write checkpoints to a folder, or to continue from one there."""
    checkpoints = direct_checkpoints(folder)
    return {"checkpoints": checkpoints, "arguments": ["--save-every-steps", str(SAVED_AT)]}


class Runs:
    """All runs of one folder: they share tokens and references."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards = write_shards(folder / "train")
        self._references: dict[str, list[tuple[float, float]]] = {}
        self._models: dict[str, Any] = {}

    def reference(self, job: dict[str, Any], model: dict[str, Any]) -> list[tuple[float, float]]:
        """Loss and norm of transformers' model over a job's steps, from the same first values. `model`: what the job's has beyond BASE."""
        name = reference_name(job, model)
        if name not in self._references:
            publish_first_values(self._folder / name, job)
            theirs = self._models[name] = their_model(self._folder / name).train()
            self._references[name] = plain_history(theirs, lambda tokens: theirs(tokens).logits, self._shards, job)
        return self._references[name]

    def measured(self, name: str, ranks: int, job: dict[str, Any]) -> list[tuple[float, float]]:
        """Loss and norm of the trainer's steps, from its own entry point."""
        code, output = run_ranks(self._folder / name, ranks, job, {"train": self._shards})
        if code != 0:
            raise RuntimeError(f"{name}: must end with 0, got {code}\n{output}")
        return [(step["loss"], step["gradientNorm"]) for step in events(output, "step")]

    def layouts(self, table: list[tuple[str, int, dict[str, Any]]], model: dict[str, Any], norm: float = NORM) -> Iterator[Row]:
        """20 steps in each layout beside 20 steps of transformers' model."""
        for name, ranks, changes in table:
            job = job_of(changes, model)
            expected = self.reference(job, model)
            yield Row(f"{STEPS} steps", name, differences(self.measured(name, ranks, job), expected, norm))

    def continued(self, table: list[tuple[str, int, dict[str, Any]]], names: tuple[str, ...], model: dict[str, Any]) -> Iterator[Row]:
        """A run of the first layout, saved after 10 steps, and the other 10 in each of the layouts."""
        layouts = {name: (ranks, changes) for name, ranks, changes in table}
        first = names[0]
        expected = self.reference(job_of({}, model), model)
        saved = self._folder / f"checkpoints {first}"
        ranks, changes = layouts[first]
        self.measured(f"{first}, saved", ranks, job_of(changes, model, **_saving(saved)))
        (saved / f"step-{STEPS}/COMMITTED.json").unlink()
        for name in names:
            checkpoints = self._folder / f"checkpoints {first} {name}"
            shutil.copytree(saved, checkpoints)
            ranks, changes = layouts[name]
            found = self.measured(f"{first} to {name}", ranks, job_of(changes, model, **_saving(checkpoints)))
            if len(found) != STEPS - SAVED_AT:
                raise RuntimeError(f"{name}: must continue after step {SAVED_AT}, got {len(found)} steps")
            yield Row("Resume", f"{first}, then {name}", differences(found, expected[SAVED_AT:]))

    def exported(self, table: list[tuple[str, int, dict[str, Any]]], names: tuple[str, ...], model: dict[str, Any]) -> Iterator[Row]:
        """What transformers computes with the weights that a run exports, beside the model that transformers trained itself."""
        layouts = {name: (ranks, changes) for name, ranks, changes in table}
        for name in names:
            ranks, changes = layouts[name]
            job = job_of(changes, model, arguments=["--export-weights"])
            self.reference(job, model)
            self.measured(f"{name} exported", ranks, job)
            tokens = random_tokens(32)
            with torch.no_grad():
                theirs = self._models[reference_name(job, model)]
                off = their_model(self._folder / f"{name} exported/model")(tokens).logits - theirs(tokens).logits
            yield Row("Export after 20 steps", name, {"logits": Figure(off.abs().max().item(), LOGITS)})


def differences(found: list[tuple[float, float]], expected: list[tuple[float, float]], allowed: float = NORM) -> dict[str, Figure]:
    """Largest differences of loss and gradient norm."""
    pairs = list(zip(found, expected, strict=True))
    loss = max(abs(ours[0] - theirs[0]) for ours, theirs in pairs)
    norm = max(abs(ours[1] - theirs[1]) for ours, theirs in pairs)
    return {"loss": Figure(loss, LOSS), "norm": Figure(norm, allowed)}


def all_runs(folder: Path) -> Iterator[Row]:
    """Every layout, continuation and export."""
    runs = Runs(folder)
    for table, names, model in ((DENSE, CONTINUED, {}), (EXPERTS, CONTINUED_EXPERTS, MIXTURE)):
        yield from runs.layouts(table, model)
        yield from runs.continued(table, names, model)
        yield from runs.exported(table, names[:1], model)
    for family, model in TODAY.items():
        names = MIXTURES_OF_TODAY if "num_experts_per_tok" in model else DENSE_OF_TODAY
        table = [(f"{family}, {name}", ranks, changes) for name, ranks, changes in DENSE + EXPERTS if name in names]
        yield from runs.layouts(table, model, NORMS_OF_TODAY.get(family, NORM))
