"""Which backend carries a run. Each is imported only when it is chosen: no image has the libraries of all of them."""

from pathlib import Path

import torch

from slipway_trainer.backend import Backend
from slipway_trainer.exits import Settings
from slipway_trainer.layout import Layout
from slipway_trainer.settings import RunSettings

#: The first PyTorch whose FSDP2 this trainer uses.
FSDP2_SINCE = (2, 6)


def backend_name(settings: RunSettings, torch_version: str) -> str:
    """The name of the backend. Raises Settings for what it cannot do."""
    asked = settings.arguments.backend
    major, minor = torch_version.split(".")[:2]
    old = (int(major), int(minor)) < FSDP2_SINCE
    name = asked if asked != "auto" else "fsdp1" if old or settings.collectives == "smddp" else "fsdp2"
    why = f"PyTorch {torch_version}" if old else f"collectives {settings.collectives}"
    issues = []
    if name == "fsdp2" and old:
        issues.append(f"--backend: must be fsdp1 under PyTorch {torch_version}, got fsdp2; use an image with PyTorch 2.6 or later")
    if name == "fsdp1" and settings.parallel.tensor > 1:
        issues.append(f"tensor_parallel_degree: must be 1 with FSDP1 ({why}), got {settings.parallel.tensor}; use smp-v2, or PyTorch 2.6")
    if name == "fsdp1" and settings.parallel.expert > 1:
        issues.append(f"expert_parallel_degree: must be 1 with FSDP1 ({why}), got {settings.parallel.expert}; use smp-v2, or PyTorch 2.6")
    if name == "fsdp1" and settings.parallel.compile:
        issues.append(f"compile: must be false with FSDP1 ({why}), got true; use PyTorch 2.6 or later")
    if name == "fsdp2" and settings.parallel.tensor > 1 and settings.architecture.experts:
        issues.append(f"tensor_parallel_degree: must be 1 with a mixture of experts, got {settings.parallel.tensor}; use smp-v2")
    if issues:
        raise Settings(issues)
    return name


def build_backend(settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None) -> Backend:
    """The backend of this rank, with its model on the device."""
    if settings.library == "deepspeed":
        from slipway_trainer.deepspeed_backend import DeepSpeedBackend

        return DeepSpeedBackend(settings, layout, device, weights)
    if settings.library == "smp-v2":
        from slipway_trainer.smp_v2 import SmpBackend

        return SmpBackend(settings, layout, device, weights)
    if backend_name(settings, torch.__version__) == "fsdp1":
        from slipway_trainer.fsdp1 import Fsdp1Backend

        return Fsdp1Backend(settings, layout, device, weights)
    from slipway_trainer.fsdp2 import Fsdp2Backend

    return Fsdp2Backend(settings, layout, device, weights)
