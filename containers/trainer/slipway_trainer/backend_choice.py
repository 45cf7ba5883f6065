"""Selects the backend of a run. Does not import PyTorch, so that run files can be checked without it."""

from slipway_trainer.exits import Settings, refused
from slipway_trainer.limits import limits_of
from slipway_trainer.settings import RunSettings

#: The first PyTorch version with which this trainer uses FSDP2.
FSDP2_SINCE = (2, 6)
#: The first PyTorch version whose FSDP2 shards frozen parameters of other dtypes than the trained ones
#: (https://github.com/pytorch/pytorch/pull/154103, 2026-11-28).
NF4_SINCE = (2, 8)


def backend_name(settings: RunSettings, torch_version: str) -> str:
    """The name of the backend. Raises Settings with every option that the backend does not support."""
    name = _chosen(settings, torch_version)
    issues = refused(limits_of(settings, name)) + _too_old(settings, torch_version)
    if issues:
        raise Settings(issues)
    return name


def _version(torch_version: str) -> tuple[int, int]:
    major, minor = torch_version.split(".")[:2]
    return int(major), int(minor)


def _too_old(settings: RunSettings, torch_version: str) -> list[str]:
    found = settings.training.quantization
    if found is None or _version(torch_version) >= NF4_SINCE:
        return []
    must = f"must be left out under PyTorch {torch_version}, got {found}"
    return [f"training.lora.quantization: {must}; use an image with PyTorch {NF4_SINCE[0]}.{NF4_SINCE[1]} or later"]


def _chosen(settings: RunSettings, torch_version: str) -> str:
    if settings.library in ("smp-v2", "deepspeed"):
        return settings.library
    old = _version(torch_version) < FSDP2_SINCE
    requested = settings.arguments.backend
    if requested == "fsdp2" and old:
        must = f"must be fsdp1 under PyTorch {torch_version}, got fsdp2"
        raise Settings([f"code.arguments.backend: {must}; use an image with PyTorch 2.6 or later"])
    return requested if requested != "auto" else "fsdp1" if old or settings.collectives == "smddp" else "fsdp2"


def compiles(settings: RunSettings, device_type: str) -> bool:
    """Whether FSDP2's blocks and loss are compiled. By default, only dense models on GPUs without tensor parallelism are: the shapes of
    experts depend on the data, and with PyTorch 2.15, compiled tensor-parallel blocks give different results.
    lib/core/distribution/fsdp.ts has the same rule."""
    if settings.parallel.compile is not None:
        return settings.parallel.compile
    return device_type == "cuda" and not settings.architecture.experts and settings.parallel.tensor == 1
