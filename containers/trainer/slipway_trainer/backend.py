"""The interface between the training loop and a distribution library. Each library is imported only when it is used: no image has all."""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from slipway_trainer import float8
from slipway_trainer.batches import MicroBatch
from slipway_trainer.checkpoint.saver import LibraryCheckpoints
from slipway_trainer.exits import InvalidRun
from slipway_trainer.layout import Layout
from slipway_trainer.limits import backend_name
from slipway_trainer.settings import RunSettings


class Backend:
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
    state_stays = False
    #: None: `state` is saved in DCP's format.
    library_checkpoints: LibraryCheckpoints | None = None
    #: The loss of a micro-batch (objective.py).
    _objective: Callable[..., Tensor]

    def begin(self) -> None:
        """Sets the initial values of the model, unless they are set when it is built. Must precede the first step if no state is loaded."""

    def state(self) -> dict[str, Tensor]:
        """The complete state of model and optimizer as sharded tensors, by stable names."""
        raise NotImplementedError("the library writes its own checkpoints")

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restores the state from the tensors of `state`, after a checkpoint was loaded into them; nothing if they are those of the
        model."""

    def whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yields every full parameter by name, one at a time. All ranks must iterate together, because this uses collectives."""
        raise NotImplementedError

    def forward_backward(self, batch: MicroBatch, share: float | Tensor, last: bool) -> Tensor:
        """One micro-step: adds the gradients of `share` times the objective; returns the objective, detached. `last`: gradients are reduced
        across ranks."""
        raise NotImplementedError

    @torch.no_grad()
    def evaluate(self, batch: MicroBatch) -> Tensor:
        """The loss of a micro-batch, without gradients."""
        return self._objective(self.model, batch)

    @torch.no_grad()
    def next_tokens(self, tokens_BL: Tensor, last_B: Tensor) -> Tensor:
        """The most likely token after position `last_B` of each row, (B); later tokens of a row are ignored. All ranks must pass the same
        rows."""
        return self._objective.next_tokens(self.model, tokens_BL, last_B)

    def clip(self, max_norm: float) -> Tensor:
        """Clips gradients to `max_norm` (0: no clipping) and returns their norm before clipping. DeepSpeed also runs the optimizer step
        here."""
        raise NotImplementedError

    def close(self) -> None:
        """Releases resources before the process group is destroyed."""


#: Module and class by the name in limits.py.
_BACKENDS = {
    "deepspeed": ("deepspeed_backend", "DeepSpeedBackend"),
    "smp-v2": ("smp_v2", "SmpBackend"),
    "fsdp1": ("fsdp1", "Fsdp1Backend"),
    "fsdp2": ("fsdp2", "Fsdp2Backend"),
}


def build_backend(settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None) -> Backend:
    """The backend of this rank, with its model on the device. Raises InvalidRun if the backend does not support the run."""
    module, kind = _BACKENDS[backend_name(settings, torch.__version__)]
    if settings.training.quantization is not None:
        require_bitsandbytes()
    if settings.training.precision == "fp8":
        require_float8(settings.training.fp8_recipe, device)
    return getattr(import_module(f"slipway_trainer.{module}"), kind)(settings, layout, device, weights)


def require_bitsandbytes() -> None:
    """Raises InvalidRun if the image lacks the library of quantized weights."""
    if find_spec("bitsandbytes") is None:
        must = "must be left out in an image without bitsandbytes, got nf4"
        raise InvalidRun(f"training.lora.quantization: {must}; add bitsandbytes to the image, or use the environment's image")


def require_float8(recipe: str | None, device: torch.device) -> None:
    """Raises InvalidRun if the GPU, or this PyTorch version on it, does not support the recipe."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    if not float8.supported(device):
        raise InvalidRun(f"training.precision: must be bf16 on {name}, which has no float8, got fp8; set training.precision: bf16")
    if recipe == "rowwise" and not float8.scales_rows(device):
        raise InvalidRun(
            f"training.fp8Recipe: must be tensorwise on {name} with PyTorch {torch.__version__}, which has no scales of rows there, "
            "got rowwise; use tensorwise, or an image with a newer PyTorch"
        )
