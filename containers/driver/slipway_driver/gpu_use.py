"""How busy this host's GPUs are and how much of their memory is in use, as nvidia-smi tells it once a minute.

Fields utilization.gpu (percent of the last sample period in which a kernel ran), memory.used and memory.total (MiB):
https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-23. A GPU that is divided by MIG, or lost, has no utilisation: `[N/A]`.
"""

from __future__ import annotations

import subprocess
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional

QUERY = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
EVERY_SECONDS, SECONDS_PER_HOST = 60.0, 2.0
#: nvidia-smi takes seconds on eight GPUs without persistence mode.
ANSWER_SECONDS = 20.0


def parse_use(text: str) -> Optional[Dict[str, Any]]:
    """From `97, 71234, 81559` a line: `utilizationPercent`, the mean over the GPUs; `memoryGiB`, of the fullest; `totalGiB`, of that one.

    None without a GPU that answers. `utilizationPercent` is None where no GPU tells it.
    """
    busy: List[int] = []
    memory: List["tuple[int, int]"] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 3 or not (cells[1].isdigit() and cells[2].isdigit()):
            continue
        memory.append((int(cells[1]), int(cells[2])))
        if cells[0].isdigit():
            busy.append(int(cells[0]))
    if not memory:
        return None
    used, total = max(memory)
    mean = round(sum(busy) / len(busy), 1) if busy else None
    return {"utilizationPercent": mean, "memoryGiB": round(used / 1024, 1), "totalGiB": round(total / 1024, 1)}


def read_use() -> Optional[Dict[str, Any]]:
    """None when nvidia-smi does not answer in time. Raises OSError where there is none."""
    try:
        done = subprocess.run(QUERY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return parse_use(done.stdout.decode("utf-8", "replace"))


def every(environ: Mapping[str, str], hosts: int) -> float:
    """Seconds between two looks: SLIPWAY_GPU_SECONDS, else 60, and more for many hosts: a look at all of them is one line of the log."""
    return float(environ.get("SLIPWAY_GPU_SECONDS") or max(EVERY_SECONDS, SECONDS_PER_HOST * hosts))


class GpuUse:
    """Looks in a thread of its own, so that a slow nvidia-smi delays nothing; a host without GPUs is asked once."""

    def __init__(self, seconds: float, read: Callable[[], Optional[Dict[str, Any]]] = read_use) -> None:
        self._seconds, self._read = seconds, read
        self._newest: Optional[Dict[str, Any]] = None
        self._end = threading.Event()

    def start(self) -> None:
        """Begins to ask nvidia-smi, in a thread that does not keep the process alive."""
        threading.Thread(target=self._look, name="gpu-use", daemon=True).start()

    def end(self) -> None:
        """Ends the questions; a question under way is not waited for."""
        self._end.set()

    def _look(self) -> None:
        while not self._end.wait(self._seconds):
            try:
                self._newest = self._read() or self._newest
            except OSError:
                return

    def take(self) -> Optional[Dict[str, Any]]:
        """What was seen last, once; None when nothing is new."""
        newest, self._newest = self._newest, None
        return newest


class MeanUse:
    """Mean utilisation of the GPUs over all hosts and looks of an attempt. Outlives its rounds, as the times of its steps do."""

    def __init__(self) -> None:
        self._sum, self._looks = 0.0, 0

    def add(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        """What the hosts have told at one moment; those whose GPUs do not tell it count nothing."""
        for use in hosts.values():
            busy = use.get("utilizationPercent")
            if isinstance(busy, (int, float)):
                self._sum, self._looks = self._sum + busy, self._looks + 1

    def facts(self) -> Dict[str, Any]:
        """What the heartbeat says of it; nothing while no GPU has told any."""
        return {"gpuUtilizationPercent": round(self._sum / self._looks, 1)} if self._looks else {}
