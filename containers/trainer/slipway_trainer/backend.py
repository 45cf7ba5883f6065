"""What a way to distribute the model must offer the training loop."""

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from slipway_trainer.batches import MicroBatch
from slipway_trainer.checkpoint.library_saver import LibraryCheckpoints
from slipway_trainer.layout import Layout


class Backend(Protocol):
    """One distribution library. The loop never asks which one it has."""

    layout: Layout
    device: torch.device
    model: nn.Module
    optimizer: torch.optim.Optimizer
    #: Rank among those that see different samples.
    data_rank: int
    #: Shapes of the whole parameters by name, whatever part of them this rank holds.
    shapes: dict[str, torch.Size]
    #: Whether `state` always gives the same tensors, which stand still between two optimizer steps whatever the model does meanwhile.
    state_stays: bool
    #: None: checkpoints are those of `state`, in DCP's format.
    library_checkpoints: LibraryCheckpoints | None

    def state(self) -> dict[str, Tensor]:
        """Everything that a checkpoint holds of model and optimizer, by stable names, as sharded tensors."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave, after a checkpoint was loaded into it."""

    def whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter in full, by name, one at a time; every rank must walk through it at the same time."""

    def forward_backward(self, batch: MicroBatch, share: float | Tensor, last: bool) -> Tensor:
        """One micro-step: adds gradients of `share` times the objective; returns the objective, detached. `last`: gradients are synced."""

    def evaluate(self, batch: MicroBatch) -> Tensor:
        """Loss without gradients."""

    def next_tokens(self, tokens_BL: Tensor, last_B: Tensor) -> Tensor:
        """The likeliest token behind position `last_B` of each row, (B); what stands behind it in the row is not looked at. Every rank has
        the same rows."""

    def clip(self, max_norm: float) -> Tensor:
        """Clips gradients to `max_norm` (0: only measures) and returns their norm before. DeepSpeed's step happens here too."""

    def close(self) -> None:
        """Frees what outlives the process group otherwise."""
