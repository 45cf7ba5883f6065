"""Handles the result of each step: checks its loss and prints its progress line."""

import math
from dataclasses import dataclass

import torch

from slipway_trainer import exits, progress
from slipway_trainer.continuation import Continuation
from slipway_trainer.saves import Saves
from slipway_trainer.settings import RunSettings
from slipway_trainer.tally import Pending, Tally
from slipway_trainer.trackers import SparingTracker, log_all
from slipway_trainer.world import World

RECENT_LOSSES = 50


@dataclass(frozen=True)
class Launched:
    """A launched step. `seconds`: its duration; None if it is measured on the device."""

    step: int
    pending: Pending
    rate: float
    data_seconds: float
    seconds: float | None


class StepResults:
    """The results of a run's steps on one rank, in order."""

    def __init__(
        self, settings: RunSettings, world: World, saves: Saves, continuation: Continuation, trackers: list[SparingTracker]
    ) -> None:
        self._settings, self._world, self._saves = settings, world, saves
        self._continuation, self._trackers = continuation, trackers
        self._recent: list[float] = []

    def take(self, launched: Launched, found: Tally, seconds: float) -> None:
        """Checks and prints a step. Raises LossFailed on all ranks for a loss that ends the run."""
        self._check(launched.step, found)
        is_last = launched.step == self._settings.training.steps
        if self._world.rank == 0 and (is_last or launched.step % self._settings.arguments.log_every_steps == 0):
            self._report(launched, found, seconds)

    def _check(self, step: int, found: Tally) -> None:
        """Raises LossFailed for a loss that is not finite or is a spike. Results are read before a save, so such a step never reaches a
        checkpoint."""
        if not math.isfinite(found.loss) or not math.isfinite(found.norm):
            raise exits.LossFailed(
                f"step {step}: loss {found.loss} and gradient norm {found.norm} must be finite; "
                "lower the learning rate, or look at the data of this step"
            )
        factor = self._settings.arguments.loss_spike_factor
        if factor and len(self._recent) == RECENT_LOSSES and found.loss > factor * sum(self._recent) / RECENT_LOSSES:
            reason = f"step {step}: loss {found.loss:.4f} is more than {factor} times its recent mean"
            if self._settings.arguments.loss_policy != "alert":
                raise exits.LossFailed(f"{reason}; look at the data of this step, or raise loss-spike-factor")
            if self._world.rank == 0:
                progress.emit("loss", step=step, reason=reason)
        self._recent = (self._recent + [found.loss])[-RECENT_LOSSES:]

    def _report(self, launched: Launched, found: Tally, seconds: float) -> None:
        settings, world = self._settings, self._world
        memory = None
        if world.device.type == "cuda":
            memory = round(torch.cuda.max_memory_reserved(world.device) / 2**30, 2)
        fields = dict(
            step=launched.step,
            loss=found.loss,
            tokens=self._continuation.tokens(launched.step),
            **progress.step_numbers(settings.architecture, settings.training, world.ranks, seconds, world.device_name, found.tokens),
            learningRate=launched.rate,
            gradientNorm=found.norm,
            dataSeconds=round(launched.data_seconds, 4),
            saveBlockedSeconds=round(self._saves.take_blocked_seconds(), 3),
            memoryGiB=memory,
            expertLoad=[round(load, 3) for load in found.expert_loads] or None,
        )
        progress.emit("step", **fields)
        log_all(self._trackers, launched.step, fields)
