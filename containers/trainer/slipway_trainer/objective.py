"""What a backend minimises: the loss of a micro-batch, whatever the model is wrapped in."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.loss import chunks_for, loss_over
from slipway_trainer.settings import RunSettings
from slipway_trainer.tensor_parallel import TensorParallel


class Objective:
    """The mean loss over the targets of a micro-batch, or over this rank's part of them."""

    def __init__(
        self,
        settings: RunSettings,
        context: ContextParallel | None,
        device: torch.device,
        compiled: bool = False,
        tensor: TensorParallel | None = None,
    ) -> None:
        self._settings, self._context, self._device, self._compiled, self._tensor = settings, context, device, compiled, tensor

    def __call__(self, model: nn.Module, tokens_BL: Tensor, targets_BL: Tensor) -> Tensor:
        if self._context is not None:
            tokens_BL, targets_BL = self._context.part(tokens_BL), self._context.part(targets_BL)
        arguments = self._settings.arguments
        words = self._settings.architecture.vocabulary_size // (self._tensor.ranks if self._tensor is not None else 1)
        chunks = chunks_for(arguments.loss_chunks, targets_BL.numel(), words)
        with self._offload():
            return model(tokens_BL, loss_over(targets_BL, chunks, arguments.z_loss, self._compiled, self._tensor))

    def _offload(self) -> AbstractContextManager:
        """Activations kept for the backward pass wait in pinned host memory when the run asks for it."""
        if not self._settings.training.activation_offload:
            return nullcontext()
        return torch.autograd.graph.save_on_cpu(pin_memory=self._device.type == "cuda")
