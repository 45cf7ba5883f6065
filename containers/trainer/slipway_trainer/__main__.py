"""`python -m slipway_trainer`: trains the run of SLIPWAY_JOB_FILE on this rank."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from slipway_trainer.backend import build_backend
from slipway_trainer.batches import channel_folder
from slipway_trainer.checkpoint.process import SaverProcess
from slipway_trainer.exits import TrainerError, complain
from slipway_trainer.layout import resolve_layout
from slipway_trainer.limits import backend_name
from slipway_trainer.settings import RunSettings, read_settings
from slipway_trainer.trainer import Trainer
from slipway_trainer.world import World


def run(words: list[str]) -> int:
    """Runs training on this rank and returns its exit code. Raises TrainerError for errors with their own exit code."""
    settings = read_settings(words)
    arguments = settings.arguments
    # Must be forked before CUDA, network connections and threads are initialized.
    saver = SaverProcess.start() if writes_beside(settings) else None
    bind_to_gpu()
    world = World(settings.collectives, arguments.collective_timeout_seconds, arguments.steady_timeout_seconds, saver)
    world.announce("prepare", begin=True)
    layout = resolve_layout(settings.parallel, world.ranks, settings.architecture, settings.training)
    weights = channel_folder(settings.weights, dict(os.environ), "model.weights") if settings.weights else None
    trainer = Trainer(settings, world, build_backend(settings, layout, world.device, weights), os.environ)
    world.announce("prepare", begin=False)
    try:
        trainer.resume()
        code = trainer.train()
        if code == 0 and (arguments.export_weights or arguments.export_adapter):
            trainer.export(Path(os.environ["SM_MODEL_DIR"]), weights)
    except BaseException as error:
        # Other exceptions have exit code 1, as in Python itself.
        trainer.fail(error.code if isinstance(error, TrainerError) else 1)
        raise
    trainer.close(code)
    world.close()
    return code


def writes_beside(settings: RunSettings) -> bool:
    """Whether a separate process writes this run's checkpoints, and not a library."""
    return bool(settings.checkpoints.uri) and backend_name(settings, torch.__version__).startswith("fsdp")


def bind_to_gpu() -> None:
    """Binds the rank to the CPUs near its GPU, so that its memory is allocated on the same NUMA node and copies stay within a socket. Must
    precede libraries that create threads: existing threads would keep their binding."""
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available() and local_rank < torch.cuda.device_count():
        bind_near(pci_address_of(torch.cuda.get_device_properties(local_rank)), os.environ)


#: `off` in a run's environmentVariables disables the binding.
VARIABLE = "SLIPWAY_NUMA_BINDING"


def parse_cpus(text: str) -> set[int]:
    """Parses a CPU list of the kernel: `0-23,96-119`."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def processors_near(pci_address: str, root: Path = Path("/sys")) -> set[int]:
    """CPUs of the NUMA node of a PCI device (`0000:53:00.0`); empty if unknown."""
    try:
        node = int((root / "bus/pci/devices" / pci_address.lower() / "numa_node").read_text())
        text = (root / f"devices/system/node/node{node}/cpulist").read_text() if node >= 0 else ""
    except (OSError, ValueError):
        return set()
    return parse_cpus(text)


def bind_near(pci_address: str, environ: Mapping[str, str], root: Path = Path("/sys")) -> set[int]:
    """Binds this process and its future threads to CPUs; returns them, empty if nothing was bound.

    CPUs that the process may not use (cgroups, the launcher's binding) are excluded.
    """
    if environ.get(VARIABLE) == "off":
        return set()
    chosen = processors_near(pci_address, root) & os.sched_getaffinity(0)
    if chosen:
        os.sched_setaffinity(0, chosen)
    return chosen


def pci_address_of(properties: object) -> str:
    """The PCI address of a GPU from PyTorch's device properties; "" if this PyTorch version does not have it."""
    names = ("pci_domain_id", "pci_bus_id", "pci_device_id")
    values = [getattr(properties, name, None) for name in names]
    if any(not isinstance(value, int) for value in values):
        return ""
    domain, bus, device = values
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"


def main(words: list[str]) -> int:
    """Like `run`, with the exit code of an error that has one."""
    try:
        return run(words)
    except TrainerError as error:
        return complain(error)


def leave(code: int) -> None:
    """Ends the process immediately. After an error, threads of collectives would let a normal exit wait for ranks that have ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
