"""One line that says what the host is made of: accelerators, network, versions. For the log and for support cases."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

_NVIDIA_SMI = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]


def _output(command: List[str], timeout_seconds: float = 10.0) -> Optional[str]:
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=timeout_seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def parse_gpus(text: str) -> Dict[str, Any]:
    """Accelerators from nvidia-smi's `name, memory.total, driver_version` lines; memory in MiB."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.count(",") >= 2]
    if not rows:
        return {"gpus": 0}
    return {"gpus": len(rows), "gpu": rows[0][0], "gpuMemoryMiB": int(float(rows[0][1])), "driver": rows[0][2]}


def efa_driver(root: Path = Path("/sys/module/efa/version")) -> Optional[str]:
    try:
        return root.read_text().strip()
    except OSError:
        return None


def count_neuron_cores(root: Path = Path("/sys/class/neuron_device")) -> int:
    """Neuron devices of a Trainium host; 0 elsewhere."""
    try:
        return len(os.listdir(str(root)))
    except OSError:
        return 0


def inventory(efa_devices: int) -> Dict[str, Any]:
    """The facts of this host. What cannot be found out is left out, never guessed."""
    facts: Dict[str, Any] = parse_gpus(_output(_NVIDIA_SMI) or "")
    facts.update({"cpus": os.cpu_count() or 1, "efaDevices": efa_devices, "neurons": count_neuron_cores()})
    facts.update({"python": platform.python_version(), "kernel": platform.release()})
    driver = efa_driver()
    if driver:
        facts["efaDriver"] = driver
    torch = _output([sys.executable, "-c", "import importlib.metadata as m; print(m.version('torch'))"])
    if torch:
        facts["torch"] = torch.strip()
    return facts
