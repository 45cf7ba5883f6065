"""Computes the loss of a model on the evaluation channel."""

from collections.abc import Callable

import torch

from slipway_trainer.backend import Backend
from slipway_trainer.batches import Batches
from slipway_trainer.loss import IGNORED
from slipway_trainer.settings import RunSettings
from slipway_trainer.world import World


def evaluation_loss(
    backend: Backend, evaluation: Batches, settings: RunSettings, world: World, on_batch: Callable[[], None] = lambda: None
) -> float:
    """Mean loss over the first global batches of the evaluation channel. All ranks must call it. `on_batch` is called after each batch."""
    # Complete global batches, so that the samples do not depend on the number of ranks: each once, unless the channel is smaller than one.
    whole = evaluation.samples // settings.training.global_batch_size
    batches = max(1, min(settings.arguments.eval_batches, whole))
    total, divisor = torch.zeros((), device=world.device), torch.zeros((), device=world.device)
    for number in range(batches * evaluation.micro_steps):
        step, micro_step = divmod(number, evaluation.micro_steps)
        batch = evaluation.micro_batch(step, micro_step, world.device)
        total += backend.evaluate(batch)
        found = (batch.targets_BL != IGNORED).sum() / backend.layout.context
        divisor += found if settings.training.counts_targets else 1
        on_batch()
    return world.mean(total) / max(world.mean(divisor), 1e-9)
