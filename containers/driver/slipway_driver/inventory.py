"""Inventory of a host: accelerators, network and versions, for the log and for support cases, and whether its NVIDIA driver supports the
image's CUDA version, so that the log names the problem before a rank fails.

Minimum driver by CUDA major version: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (2026-11-22).
Within a major version an older driver is sufficient. Across major versions it is not, unless the image contains NVIDIA's forward
compatibility package (cuda-compat), which data center GPUs support.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import re
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from slipway_driver.gpus import QUERY, answer_of, gpu_query, rows
from slipway_driver.gpus import parse_gpus as parse_identities

MIN_DRIVER = {11: 450, 12: 525, 13: 580}
COMPAT_FOLDER = Path("/usr/local/cuda/compat")
_NVIDIA_SMI = gpu_query("name,memory.total,driver_version")
#: The same commands as in the toolkit and the SDK, so that the numbers match their SM_NUM_GPUS and SM_NUM_NEURONS.
_LIST_GPUS, _LIST_NEURONS = ["nvidia-smi", "--list-gpus"], ["neuron-ls", "-j"]


def _output(command: Sequence[str]) -> Optional[str]:
    answer = answer_of(command, 10.0)
    return answer.text if answer.code == 0 else None


def parse_gpus(text: str) -> Dict[str, Any]:
    """GPU model, memory (MiB) and driver version from nvidia-smi's `name, memory.total, driver_version` lines."""
    cells = next(rows(text, 3), ["", "", ""])
    return {"gpu": cells[0], "gpuMemoryMiB": int(cells[1]), "driver": cells[2]} if cells[1].isdigit() else {}


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
    if identified := parse_identities(_output(QUERY) or "") if gpus else []:
        facts["gpuIds"] = [list(gpu) for gpu in identified]
    facts.update({"cpus": os.cpu_count() or 1, "efaDevices": efa_devices, "neurons": neurons})
    facts.update({"python": platform.python_version(), "kernel": platform.release()})
    versions = {"torch": torch_version(), "cuda": cuda_of_torch()}
    with contextlib.suppress(OSError):  # The EFA kernel module is not loaded.
        versions["efaDriver"] = Path("/sys/module/efa/version").read_text().strip()
    facts.update({name: version for name, version in versions.items() if version})
    return facts


def cuda_of_torch() -> Optional[str]:
    """The CUDA version for which this Python's PyTorch was built, read from its files because an import takes seconds; None if unknown."""
    try:
        found = importlib.util.find_spec("torch")
        text = (Path(str(found.submodule_search_locations[0])) / "version.py").read_text(encoding="utf-8") if found else ""  # type: ignore[index]
    except (OSError, ValueError, TypeError, IndexError):
        return None
    match = re.search(r"^cuda[^=\n]*= *['\"]([\d.]+)['\"]", text, re.MULTILINE)
    return match.group(1) if match else None


def driver_line(facts: Mapping[str, Any], compat: bool) -> str:
    """The log line for a host's inventory (`driver`, `cuda`); "" if either value is unknown."""
    driver, cuda = facts.get("driver"), facts.get("cuda")
    if not driver or not cuda:
        return ""
    least = MIN_DRIVER.get(int(str(cuda).split(".")[0]))
    versions = "NVIDIA driver %s, PyTorch built for CUDA %s" % (driver, cuda)
    if least is None:
        return versions
    if int(str(driver).split(".")[0]) >= least:
        return "%s: compatible (CUDA %s needs %d or later)" % (versions, str(cuda).split(".")[0], least)
    fix = "CUDA cannot be initialized; use an image for an older CUDA, or one with cuda-compat"
    helps = "the image has cuda-compat, which may support it" if compat else fix
    return "%s: the driver is older than the required %d; %s" % (versions, least, helps)
