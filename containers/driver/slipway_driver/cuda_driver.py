"""Checks whether the host's NVIDIA driver supports the image's CUDA version, so that the log names the problem before a rank fails.

Minimum driver by CUDA major version: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (2026-11-22).
Within a major version an older driver is sufficient. Across major versions it is not, unless the image contains NVIDIA's forward
compatibility package (cuda-compat), which data center GPUs support.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any, Mapping, Optional

MIN_DRIVER = {11: 450, 12: 525, 13: 580}
COMPAT_FOLDER = Path("/usr/local/cuda/compat")


def cuda_of_torch() -> Optional[str]:
    """The CUDA version for which this Python's PyTorch was built, read from its files because an import takes seconds; None if unknown."""
    try:
        found = importlib.util.find_spec("torch")
        text = (Path(str(found.submodule_search_locations[0])) / "version.py").read_text(encoding="utf-8") if found else ""  # type: ignore[index]
    except (OSError, ValueError, TypeError, IndexError):
        return None
    match = re.search(r"^cuda[^=\n]*= *['\"]([\d.]+)['\"]", text, re.MULTILINE)
    return match.group(1) if match else None


def has_compat(folder: Path = COMPAT_FOLDER) -> bool:
    """Whether the image contains the libraries of a newer driver (cuda-compat)."""
    return any(folder.glob("libcuda.so*"))


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
