"""What this machine has that cases of the GPU suite need."""

from dataclasses import dataclass
from importlib.util import find_spec

GIB = 1 << 30


@dataclass(frozen=True)
class Machine:
    """`gpu`: the name of the first one, empty without any. `packages`: of those that cases ask for, the ones that are installed."""

    gpu: str
    gpu_gib: float
    capability: tuple[int, int]
    torch: str
    nccl: str
    packages: frozenset[str]


#: Packages beside PyTorch that make a case possible.
REQUESTED = ("torchao", "torchtitan", "triton")


def this_machine() -> Machine:
    """Reads what is here. Without PyTorch there is nothing."""
    packages = frozenset(name for name in REQUESTED if find_spec(name) is not None)
    if find_spec("torch") is None:
        return Machine("", 0.0, (0, 0), "", "", packages)
    import torch

    if not torch.cuda.is_available():
        return Machine("", 0.0, (0, 0), torch.__version__, "", packages)
    properties = torch.cuda.get_device_properties(0)
    nccl = ".".join(str(part) for part in torch.cuda.nccl.version())
    capability = (properties.major, properties.minor)
    return Machine(properties.name, properties.total_memory / GIB, capability, torch.__version__, nccl, packages)


def lacks_gpu(machine: Machine, gib: float = 0.0, capability: tuple[int, int] = (0, 0)) -> str:
    """Why there is no GPU of this size and generation, or an empty string."""
    if not machine.torch:
        return "no PyTorch"
    if not machine.gpu:
        return "no GPU"
    if machine.gpu_gib < gib:
        return f"needs {gib:.0f} GiB of GPU memory, {machine.gpu} has {machine.gpu_gib:.0f}"
    if machine.capability < capability:
        needed, here = (".".join(str(part) for part in version) for version in (capability, machine.capability))
        return f"needs compute capability {needed}, {machine.gpu} has {here}"
    return ""


def lacks_package(machine: Machine, name: str) -> str:
    """Why a package cannot be used, or an empty string."""
    return "" if name in machine.packages else f"{name} is not installed"
