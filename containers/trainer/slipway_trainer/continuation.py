"""The facts about a run that a checkpoint contains, and the checks before a run continues from a checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.batches import Batches
from slipway_trainer.exits import InvalidRun
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

#: What a record without a field means.
_DEFAULTS = {field.name: field.default for field in fields(Architecture) if field.default is not MISSING and field.compare}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values without those that are None: lists instead of tuples."""
    whole = {name: asdict(value) if is_dataclass(value) else value for name, value in values.items()}
    return json.loads(json.dumps({name: value for name, value in whole.items() if value is not None}))


def _differs(before: Any, now: Any) -> bool:
    """Whether a value has changed. Fields of a part that the checkpoint does not contain are not compared."""
    if isinstance(before, dict) and isinstance(now, dict):
        return any(_differs(value, now.get(name)) for name, value in before.items())
    return before != now


class Continuation:
    """The data and model of a run, as checkpoints record them."""

    def __init__(self, settings: RunSettings, batches: Batches) -> None:
        self._settings, self._batches = settings, batches
        training = settings.training
        self._tokens_per_step = training.tokens_per_step
        # Tokens and steps of the checkpoint, which may have been counted with another sequence length.
        self._tokens_before, self._steps_before = 0, 0
        self._model = _plain({field.name: getattr(settings.architecture, field.name) for field in fields(Architecture) if field.compare})

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
                **({"drawn": {name: count for name, count in batches.drawn(behind).items() if count}} if batches.mixed else {}),
            },
            "model": self._model,
        }

    def take(self, record: Mapping[str, Any]) -> list[str]:
        """Continues from the record of a checkpoint. Returns the differences to a checkpoint of another run, which may be intended.

        Raises InvalidRun if a checkpoint of this run was written with other data or another model, if one of another run leaves no step, or
        if the data position of any checkpoint does not match this run. Fields that a checkpoint does not contain are not compared.
        """
        step, is_own = int(record["step"]), record.get("runId") == self._settings.run_id
        if step >= self._settings.training.steps and not is_own:
            must = f"must be more than {step}, the steps of the checkpoint from which the run starts"
            raise InvalidRun(f"training.steps: {must}, got {self._settings.training.steps}; raise it: it counts them too")
        self._tokens_before, self._steps_before = int(record.get("tokens", self.tokens(step))), step
        own, data = self.facts(step), record.get("data") or {}
        position = {name: own["data"][name] for name in ("seed", "nextSample")}
        found = {name: data.get(name) for name in position}
        if found != position:
            raise InvalidRun(
                f"training: seed and globalBatchSize must be those of the checkpoint with data position {found}, got {position}; "
                "restore them, or start from the beginning"
            )
        differences = [
            f"{option}: must be that of the checkpoint, {data[name]}, got {own['data'].get(name)}"
            for name, option in _DATA.items()
            if name in data and data[name] != own["data"].get(name)
        ]
        if record.get("model") is not None:
            before, now = _plain(_DEFAULTS) | record["model"], self._model
            changed = sorted(name for name in {*before, *now} if _differs(before.get(name), now.get(name)))
            differences += [f"model {name}: must be that of the checkpoint, {before.get(name)}, got {now.get(name)}" for name in changed]
        if differences and is_own:
            raise InvalidRun(*differences, "restore these options, or launch a new run with checkpoints.startFrom")
        return differences
