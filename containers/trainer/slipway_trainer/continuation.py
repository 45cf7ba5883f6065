"""The facts about a run that a checkpoint contains, and the checks before a run continues from a checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.architecture_parts import Family, Latent, RopeScaling, Routing, Window
from slipway_trainer.batches import Batches
from slipway_trainer.exits import Settings
from slipway_trainer.order import batches_behind
from slipway_trainer.settings import RunSettings

#: Fields of `data` in a checkpoint, with the option or data that determines them.
_DATA = {
    "objective": "training.objective",
    "documentMask": "training.documentMask",
    "sequenceLength": "training.sequenceLength",
    "samples": "training.sequenceLength or the token shards of the channel",
    "digest": "the token shards of the channel",
    "drawn": "training.mixture up to the checkpoint, in samples of each channel",
}

#: Dataclasses of the nested fields of an architecture, by their name in a checkpoint.
_PARTS: dict[str, type] = {"routing": Routing, "rope_scaling": RopeScaling, "window": Window, "latent": Latent, "family": Family}


def _defaults(kind: type) -> dict[str, Any]:
    """The default values of a dataclass, as JSON values."""
    found = {field.name: field.default for field in fields(kind) if field.default is not MISSING and field.compare}
    return json.loads(json.dumps({name: asdict(value) if is_dataclass(value) else value for name, value in found.items()}))


def _complete(model: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the fields that an older version did not write, with the values that correspond to its behavior."""
    found = _defaults(Architecture) | model
    if "normalises_routing" in found:
        # Older versions stored this field instead of `routing`.
        found["routing"] = {"normalises": found.pop("normalises_routing")}
    return found | {name: _defaults(kind) | found[name] for name, kind in _PARTS.items() if found.get(name)}


def _recorded(shape: Architecture) -> dict[str, Any]:
    """The architecture as JSON values: lists instead of tuples."""
    found = json.loads(json.dumps(asdict(shape)))
    return {field.name: found[field.name] for field in fields(shape) if field.compare and found[field.name] is not None}


def _above_zero(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


class Continuation:
    """The data and model of a run, as checkpoints record them."""

    def __init__(self, settings: RunSettings, batches: Batches) -> None:
        self._settings, self._batches = settings, batches
        training = settings.training
        self._tokens_per_step = training.tokens_per_step
        # Tokens and steps of the checkpoint, which may have been counted with another sequence length.
        self._tokens_before, self._steps_before = 0, 0
        self._model = _recorded(settings.architecture)

    def tokens(self, step: int) -> int:
        """Number of training tokens after `step` steps."""
        return self._tokens_before + (step - self._steps_before) * self._tokens_per_step

    def facts(self, step: int) -> dict[str, Any]:
        """The fields of COMMITTED.json that describe the run and its data."""
        training, batches = self._settings.training, self._batches
        behind = batches_behind(training.skips, step)
        samples, digest = batches.seen(behind) if batches.mixed else (batches.samples, batches.digest)
        return {
            "step": step,
            "tokens": self.tokens(step),
            "epoch": batches.epoch(behind),
            "data": {
                "seed": training.seed,
                "nextSample": behind * training.global_batch_size,
                "objective": training.objective,
                "documentMask": training.document_mask,
                "sequenceLength": training.sequence_length,
                "samples": samples,
                "digest": digest,
                **({"drawn": _above_zero(batches.drawn(behind))} if batches.mixed else {}),
            },
            "model": self._model,
        }

    def take(self, record: Mapping[str, Any]) -> list[str]:
        """Continues from the record of a checkpoint. Returns the differences to a checkpoint of another run, which may be intended.

        Raises Settings if a checkpoint of this run was written with other data or another model, or if the data position of any checkpoint
        does not match this run. Fields that an older checkpoint does not contain are not compared.
        """
        step = int(record["step"])
        self._tokens_before, self._steps_before = int(record.get("tokens", self.tokens(step))), step
        own, data = self.facts(step), record.get("data") or {}
        position = {name: own["data"][name] for name in ("seed", "nextSample")}
        found = {name: data.get(name) for name in position}
        if found != position:
            raise Settings(
                [
                    f"training: seed and globalBatchSize must be those of the checkpoint with data position {found}, got {position}; "
                    "restore them, or start from the beginning"
                ]
            )
        differences = [
            f"{option}: must be that of the checkpoint, {data[name]}, got {own['data'].get(name)}"
            for name, option in _DATA.items()
            if name in data and not self._is_same(name, data[name], own["data"].get(name))
        ]
        differences += self._model_differences(record.get("model"))
        if differences and record.get("runId") == self._settings.run_id:
            raise Settings([*differences, "restore these options, or launch a new run with checkpoints.startFrom"])
        return differences

    def _is_same(self, name: str, before: Any, now: Any) -> bool:
        """Whether a field is unchanged. Older checkpoints contain all channels of a mixture, including those of which no samples were
        used."""
        if name == "drawn":
            return now is not None and _above_zero(before) == now
        whole = {"samples": self._batches.samples, "digest": self._batches.digest} if self._batches.mixed else {}
        return before in (now, whole.get(name, now))

    def _model_differences(self, before: Mapping[str, Any] | None) -> list[str]:
        if before is None:
            return []
        now, before = self._model, _complete(before)
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        return [f"model {name}: must be that of the checkpoint, {before.get(name)}, got {now.get(name)}" for name in names]
