"""The interface between the training loop and a distribution library."""

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from slipway_trainer.batches import MicroBatch
from slipway_trainer.checkpoint.library_saver import LibraryCheckpoints
from slipway_trainer.layout import Layout


class Backend(Protocol):
    """One distribution library. The training loop does not depend on which one it is."""

    layout: Layout
    device: torch.device
    model: nn.Module
    optimizer: torch.optim.Optimizer
    #: Index of this rank among the ranks that read different samples.
    data_rank: int
    #: Shapes of the full parameters by name, regardless of how they are sharded.
    shapes: dict[str, torch.Size]
    #: Whether `state` always returns the same tensors, which only an optimizer step changes.
    state_stays: bool
    #: None: `state` is saved in DCP's format.
    library_checkpoints: LibraryCheckpoints | None

    def begin(self) -> None:
        """Sets the initial values of the model, unless they are set already. Must precede the first step if no state is loaded."""

    def state(self) -> dict[str, Tensor]:
        """The complete state of model and optimizer as sharded tensors, by stable names."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restores the state from the tensors of `state`, after a checkpoint was loaded into them."""

    def whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yields every full parameter by name, one at a time. All ranks must iterate together, because this uses collectives."""

    def forward_backward(self, batch: MicroBatch, share: float | Tensor, last: bool) -> Tensor:
        """One micro-step: adds the gradients of `share` times the objective; returns the objective, detached. `last`: gradients are reduced
        across ranks."""

    def evaluate(self, batch: MicroBatch) -> Tensor:
        """The loss of a micro-batch, without gradients."""

    def next_tokens(self, tokens_BL: Tensor, last_B: Tensor) -> Tensor:
        """The most likely token after position `last_B` of each row, (B); later tokens of a row are ignored. All ranks must pass the same
        rows."""

    def clip(self, max_norm: float) -> Tensor:
        """Clips gradients to `max_norm` (0: no clipping) and returns their norm before clipping. DeepSpeed also runs the optimizer step
        here."""

    def close(self) -> None:
        """Releases resources before the process group is destroyed."""
