"""The objective that a backend minimizes: the loss of a micro-batch, independent of how the model is wrapped.

In direct preference optimization (arXiv 2305.18290), the model learns to prefer chosen answers over rejected ones, relative to a reference
model. Shape suffixes as in model.py; P pairs, B = 2 P rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.batches import MicroBatch
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.further_tokens import Further, shifted
from slipway_trainer.greedy import likeliest
from slipway_trainer.lora import LoraLinear
from slipway_trainer.loss import chunks_for, log_probabilities, loss_over
from slipway_trainer.settings import RunSettings
from slipway_trainer.tensor_parallel import TensorParallel

#: Computes the log-probability of each row's targets from the last hidden states (loss.py).
Sums = Callable[[nn.Module, Tensor], Tensor]


#: The reference model of DPO, the initial weights of a run: log-probabilities (B) of the rows (B, L), without gradients. The first argument
#: is the trained model.
Reference = Callable[[nn.Module, Tensor, Sums], Tensor]


@torch.no_grad()
def without_adapters(model: nn.Module, tokens_BL: Tensor, sums: Sums) -> Tensor:
    """The trained model with its adapters disabled as reference, because its frozen weights are the initial weights."""
    with _without_adapters(model):
        return model(tokens_BL, sums)


@contextmanager
def _without_adapters(model: nn.Module) -> Iterator[None]:
    adapted = [module for module in model.modules() if isinstance(module, LoraLinear)]
    for module in adapted:
        module.adapts = False
    try:
        yield
    finally:
        for module in adapted:
            module.adapts = True


def preference_loss(own_B: Tensor, reference_B: Tensor, beta: float) -> Tensor:
    """The mean loss of the pairs, from the log-probabilities of their rows: -log sigmoid(beta (gain of chosen - gain of rejected))."""
    gains_P2 = (own_B - reference_B).view(-1, 2)
    return -F.logsigmoid(beta * (gains_P2[:, 0] - gains_P2[:, 1])).mean()


class Objective:
    """The loss of a micro-batch, or of this rank's part of it: the mean over its targets (`pretrain`), the sum over them (`sft` and
    `documentMask`: the training loop divides by the number of targets of the global batch), or the mean over its pairs (`dpo`)."""

    def __init__(
        self,
        settings: RunSettings,
        context: ContextParallel | None,
        device: torch.device,
        compiled: bool = False,
        tensor: TensorParallel | None = None,
        reference: Reference | None = None,
    ) -> None:
        self._settings, self._context, self._device, self._compiled, self._tensor = settings, context, device, compiled, tensor
        self._reference = reference

    def __call__(self, model: nn.Module, batch: MicroBatch) -> Tensor:
        return self._pairs(model, batch) if self._settings.training.objective == "dpo" else self._tokens(model, batch)

    def _tokens(self, model: nn.Module, batch: MicroBatch) -> Tensor:
        documents_BL, further = batch.documents_BL, self._further(batch)
        tokens_BL, targets_BL = self._part(batch.tokens_BL), self._part(batch.targets_BL)
        divisor = 1 if self._settings.training.counts_targets else None
        chunks, z_weight = self._chunks(targets_BL), self._settings.arguments.z_loss
        loss = loss_over(targets_BL, chunks, z_weight, self._compiled, self._tensor, divisor)
        # DeepSpeed's engine and SMP's models support only these arguments.
        if documents_BL is None and not further:
            return model(tokens_BL, loss)
        return model(tokens_BL, loss, documents_BL, further, self._uncounted(batch.padding_BL))

    def _further(self, batch: MicroBatch) -> list[Further]:
        """The inputs of the multi-token prediction modules with the mean of their losses, weighted by mtp_loss; empty in an evaluation."""
        modules, found = self._settings.architecture.mtp_layers, []
        if not torch.is_grad_enabled():
            return []
        for places in range(1, modules + 1):
            tokens_BL, targets_BL, outside_BL = shifted(batch.tokens_BL, batch.targets_BL, places, batch.documents_BL)
            if batch.padding_BL is not None:
                outside_BL = outside_BL | batch.padding_BL
            tokens_BL, targets_BL = self._part(tokens_BL), self._part(targets_BL)
            # The technical report divides by the number of all positions, including those without such a target.
            divisor = 1 if self._settings.training.counts_targets else targets_BL.numel()
            weighed = divisor * modules / self._settings.arguments.mtp_loss
            loss = loss_over(targets_BL, self._chunks(targets_BL), 0.0, self._compiled, divisor=weighed)
            found.append(Further(tokens_BL, loss, self._uncounted(outside_BL)))
        return found

    def _part(self, whole_BL: Tensor) -> Tensor:
        """This rank's part of the sequences."""
        return whole_BL if self._context is None else self._context.part(whole_BL)

    def _uncounted(self, outside_BL: Tensor | None) -> Tensor | None:
        """This rank's part of the positions that the balance of experts leaves out; None if nothing is counted."""
        counts = self._settings.architecture.experts > 1 and not self._compiled and outside_BL is not None
        return self._part(outside_BL) if counts else None

    def next_tokens(self, model: nn.Module, tokens_BL: Tensor, last_B: Tensor) -> Tensor:
        """The most likely token after position `last_B` of each row, (B)."""
        own_BS = tokens_BL if self._context is None else self._context.part(tokens_BL)
        return model(own_BS, likeliest(last_B, tokens_BL.size(1), self._context, self._tensor))

    def _pairs(self, model: nn.Module, batch: MicroBatch) -> Tensor:
        assert self._reference is not None, "objective dpo needs a reference model"
        sums = log_probabilities(batch.targets_BL, self._chunks(batch.targets_BL))
        reference_B = self._reference(model, batch.tokens_BL, sums)
        own_B = model(batch.tokens_BL, sums, None, (), self._uncounted(batch.padding_BL))
        return preference_loss(own_B, reference_B, self._settings.arguments.beta)

    def _chunks(self, targets_BL: Tensor) -> int:
        words = self._settings.architecture.vocabulary_size // (self._tensor.ranks if self._tensor is not None else 1)
        return chunks_for(self._settings.arguments.loss_chunks, targets_BL.numel(), words)
