"""Creates the backend of a run. Each backend is imported only when it is used, because no image has all libraries."""

from importlib.util import find_spec
from pathlib import Path

import torch

from slipway_trainer import float8
from slipway_trainer.backend import Backend
from slipway_trainer.backend_choice import backend_name
from slipway_trainer.exits import Settings
from slipway_trainer.layout import Layout
from slipway_trainer.settings import RunSettings


def build_backend(settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None) -> Backend:
    """The backend of this rank, with its model on the device. Raises Settings if the backend does not support the run."""
    name = backend_name(settings, torch.__version__)
    if name == "deepspeed":
        from slipway_trainer.deepspeed_backend import DeepSpeedBackend

        return DeepSpeedBackend(settings, layout, device, weights)
    if name == "smp-v2":
        from slipway_trainer.smp_v2 import SmpBackend

        return SmpBackend(settings, layout, device, weights)
    if name == "fsdp1":
        from slipway_trainer.fsdp1 import Fsdp1Backend

        return Fsdp1Backend(settings, layout, device, weights)
    if settings.training.quantization is not None:
        require_bitsandbytes()
    if settings.training.precision == "fp8":
        require_float8(settings.training.fp8_recipe, device)
    from slipway_trainer.fsdp2 import Fsdp2Backend

    return Fsdp2Backend(settings, layout, device, weights)


def require_bitsandbytes() -> None:
    """Raises Settings if the image lacks the library of quantized weights."""
    if find_spec("bitsandbytes") is None:
        must = "must be left out in an image without bitsandbytes, got nf4"
        raise Settings([f"training.lora.quantization: {must}; add bitsandbytes to the image, or use the environment's image"])


def require_float8(recipe: str | None, device: torch.device) -> None:
    """Raises Settings if the GPU, or this PyTorch version on it, does not support the recipe."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    if not float8.supported(device):
        raise Settings([f"training.precision: must be bf16 on {name}, which has no float8, got fp8; set training.precision: bf16"])
    if recipe == "rowwise" and not float8.scales_rows(device):
        raise Settings(
            [
                f"training.fp8Recipe: must be tensorwise on {name} with PyTorch {torch.__version__}, which has no scales of rows there, "
                "got rowwise; use tensorwise, or an image with a newer PyTorch"
            ]
        )
