"""Which backend carries a run. Each is imported only when it is chosen: no image has the libraries of all of them."""

from pathlib import Path

import torch

from slipway_trainer import float8
from slipway_trainer.backend import Backend
from slipway_trainer.exits import Settings
from slipway_trainer.layout import Layout
from slipway_trainer.settings import RunSettings

#: The first PyTorch whose FSDP2 this trainer uses.
FSDP2_SINCE = (2, 6)


def backend_name(settings: RunSettings, torch_version: str) -> str:
    """The name of the backend. Raises Settings for what it cannot do."""
    if settings.library in ("smp-v2", "deepspeed"):
        name, why = settings.library, "this library"
    else:
        major, minor = torch_version.split(".")[:2]
        old = (int(major), int(minor)) < FSDP2_SINCE
        asked = settings.arguments.backend
        name = asked if asked != "auto" else "fsdp1" if old or settings.collectives == "smddp" else "fsdp2"
        why = f"{name.upper()} (PyTorch {torch_version}, collectives {settings.collectives})"
        if name == "fsdp2" and old:
            raise Settings([f"--backend: must be fsdp1 under PyTorch {torch_version}, got fsdp2; use an image with PyTorch 2.6 or later"])
    issues = [f"{option}: must be {allowed} with {why}, got {found}" for option, allowed, found in _beyond(settings, name)]
    if issues:
        raise Settings(issues)
    return name


def _beyond(settings: RunSettings, name: str) -> list[tuple[str, object, object]]:
    """What a backend cannot do: (option, what it must be, what it is)."""
    parallel, training = settings.parallel, settings.training
    mixture = settings.architecture.experts > 0
    only_fsdp2 = [
        ("training.precision", "bf16 or fp32", training.precision, training.precision == "fp8"),
        ("compile", False, True, parallel.compile),
    ]
    whole_layers = ("--recompute-layers", 1, settings.arguments.recompute_layers, settings.arguments.recompute_layers > 1)
    by_backend = {
        "fsdp2": [
            ("tensor_parallel_degree", "1 for a mixture of experts", parallel.tensor, mixture and parallel.tensor > 1),
            ("training.precision", "bf16 with tensor parallelism", "fp8", training.precision == "fp8" and parallel.tensor > 1),
        ],
        "fsdp1": [
            ("tensor_parallel_degree", 1, parallel.tensor, parallel.tensor > 1),
            ("expert_parallel_degree", 1, parallel.expert, parallel.expert > 1),
            *only_fsdp2,
        ],
        "smp-v2": [*only_fsdp2, whole_layers],
        "deepspeed": [*only_fsdp2, whole_layers],
    }
    return [(option, allowed, found) for option, allowed, found, wrong in by_backend[name] if wrong]


def build_backend(settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None) -> Backend:
    """The backend of this rank, with its model on the device."""
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
    if settings.training.precision == "fp8" and not float8.supported(device):
        raise Settings([f"training.precision: must be bf16 on {torch.cuda.get_device_name(device)}, got fp8; it has no float8"])
    from slipway_trainer.fsdp2 import Fsdp2Backend

    return Fsdp2Backend(settings, layout, device, weights)
