"""Binds a rank to the CPUs near its GPU, so that its memory is allocated on the same NUMA node and copies stay within a socket."""

import os
from collections.abc import Mapping
from pathlib import Path

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
