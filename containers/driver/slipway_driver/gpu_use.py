"""GPU utilization and memory use of this host, read from nvidia-smi once a minute.

Fields utilization.gpu (percent of the last sample period in which a kernel ran), memory.used and memory.total (MiB):
https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-23. A GPU that is partitioned by MIG, or lost, reports `[N/A]` as utilization.
"""

from __future__ import annotations

import threading
from typing import Any, Dict, Mapping, Optional

from slipway_driver.tool import answer_of, gpu_query, rows

QUERY = gpu_query("utilization.gpu,memory.used,memory.total")
EVERY_SECONDS, SECONDS_PER_HOST = 60.0, 2.0
#: nvidia-smi takes seconds on eight GPUs without persistence mode.
ANSWER_SECONDS = 20.0


def parse_use(text: str) -> Optional[Dict[str, Any]]:
    """Parses lines like `97, 71234, 81559`: `utilizationPercent` is the mean over the GPUs, `memoryGiB` and `totalGiB` are those of the GPU
    with the highest use.

    None if no GPU responds. `utilizationPercent` is None if no GPU reports its utilization.
    """
    cells = [cells for cells in rows(text, 3) if cells[1].isdigit() and cells[2].isdigit()]
    busy, memory = [int(busy) for busy, _, _ in cells if busy.isdigit()], [(int(used), int(total)) for _, used, total in cells]
    if not memory:
        return None
    used, total = max(memory)
    mean = round(sum(busy) / len(busy), 1) if busy else None
    return {"utilizationPercent": mean, "memoryGiB": round(used / 1024, 1), "totalGiB": round(total / 1024, 1)}


def every(environ: Mapping[str, str], hosts: int) -> float:
    """Seconds between two measurements: SLIPWAY_GPU_SECONDS, otherwise 60, and more for many hosts, which are all in one log line."""
    return float(environ.get("SLIPWAY_GPU_SECONDS") or max(EVERY_SECONDS, SECONDS_PER_HOST * hosts))


class GpuUse:
    """Measures in a thread, so that a slow nvidia-smi does not block the driver. The thread ends if nvidia-smi is not installed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._newest: Optional[Dict[str, Any]] = None
        self._end = threading.Event()

    def start(self) -> None:
        """Starts the measurements in a daemon thread."""
        threading.Thread(target=self._sample, name="gpu-use", daemon=True).start()

    def end(self) -> None:
        """Stops the measurements without waiting for one in progress."""
        self._end.set()

    def _sample(self) -> None:
        while not self._end.wait(self._seconds):
            answer = answer_of(QUERY, ANSWER_SECONDS)
            if answer.code is None and not answer.late:
                return
            self._newest = parse_use(answer.text or "") or self._newest

    def take(self) -> Optional[Dict[str, Any]]:
        """The newest measurement, returned only once; None if there is no new one."""
        newest, self._newest = self._newest, None
        return newest


class MeanUse:
    """Mean GPU utilization over all hosts and measurements of an attempt, including restarts in place."""

    def __init__(self) -> None:
        self._sum, self._samples = 0.0, 0

    def add(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        """Adds one measurement of each host; hosts whose GPUs do not report their utilization are ignored."""
        for use in hosts.values():
            busy = use.get("utilizationPercent")
            if isinstance(busy, (int, float)):
                self._sum, self._samples = self._sum + busy, self._samples + 1

    def facts(self) -> Dict[str, Any]:
        """The field of the heartbeat; empty if no GPU has reported its utilization."""
        return {"gpuUtilizationPercent": round(self._sum / self._samples, 1)} if self._samples else {}
