"""Inventory of a host: accelerators, network and versions, for the log and for support cases."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any, Dict, List, Optional

from slipway_driver.cuda_driver import cuda_of_torch
from slipway_driver.gpu_evidence import QUERY
from slipway_driver.gpu_evidence import parse_gpus as parse_identities
from slipway_driver.tool import answer_of

_NVIDIA_SMI = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
#: The same commands as in the toolkit and the SDK, so that the numbers match their SM_NUM_GPUS and SM_NUM_NEURONS.
_LIST_GPUS, _LIST_NEURONS = ["nvidia-smi", "--list-gpus"], ["neuron-ls", "-j"]


def _output(command: List[str], timeout_seconds: float = 10.0) -> Optional[str]:
    answer = answer_of(command, timeout_seconds)
    return answer.text if answer.code == 0 else None


def parse_gpus(text: str) -> Dict[str, Any]:
    """GPU model, memory (MiB) and driver version from nvidia-smi's `name, memory.total, driver_version` lines."""
    cells = next(([cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.count(",") == 2), None)
    if cells is None or not cells[1].isdigit():
        return {}
    return {"gpu": cells[0], "gpuMemoryMiB": int(cells[1]), "driver": cells[2]}


def efa_driver(root: Path = Path("/sys/module/efa/version")) -> Optional[str]:
    """Version of the EFA kernel module; None if it is not loaded."""
    try:
        return root.read_text().strip()
    except OSError:
        return None


def torch_version() -> Optional[str]:
    """Version of this Python's PyTorch, read from its metadata because an import takes seconds; None if it is unknown."""
    try:
        from importlib.metadata import version  # It takes longer to import than the driver.

        return version("torch") or None
    except (ImportError, OSError, ValueError, KeyError):  # Not installed, or its metadata cannot be read.
        return None


def count_gpus(text: str) -> int:
    """Number of GPUs in the output of `nvidia-smi --list-gpus`."""
    return sum(line.startswith("GPU ") for line in text.splitlines())


def count_neuron_cores(text: str, instance_type: str) -> int:
    """Number of NeuronCores in the output of `neuron-ls -j`; trn2.48xlarge has a fixed number of logical cores, as in the toolkit."""
    if "trn2.48xlarge" in instance_type:
        return 64
    try:
        return sum(int(device.get("nc_count", 0)) for device in json.loads(text))
    except (ValueError, AttributeError, TypeError):
        return 0


def inventory(efa_devices: int, instance_type: str = "") -> Dict[str, Any]:
    """The inventory of this host. Values that cannot be determined are omitted."""
    gpus, neurons = count_gpus(_output(_LIST_GPUS) or ""), count_neuron_cores(_output(_LIST_NEURONS) or "", instance_type)
    facts: Dict[str, Any] = {"gpus": gpus, **(parse_gpus(_output(_NVIDIA_SMI) or "") if gpus else {})}
    if identified := parse_identities(_output(list(QUERY)) or "") if gpus else []:
        facts["gpuIds"] = [list(gpu) for gpu in identified]
    facts.update({"cpus": os.cpu_count() or 1, "efaDevices": efa_devices, "neurons": neurons})
    facts.update({"python": platform.python_version(), "kernel": platform.release()})
    driver = efa_driver()
    if driver:
        facts["efaDriver"] = driver
    torch = torch_version()
    if torch:
        facts["torch"] = torch
    cuda = cuda_of_torch()
    if cuda:
        facts["cuda"] = cuda
    return facts
