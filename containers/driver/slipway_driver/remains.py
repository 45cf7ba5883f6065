"""Waits for processes and GPU memory of killed ranks to be released.

A rank that starts while a previous one holds GPU memory runs out of memory before its first step. NVIDIA's kernel driver needs seconds,
rarely minutes, to destroy a CUDA context (https://docs.nvidia.com/deploy/nvidia-smi/: memory.used; 2026-11-22).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable, Dict, Optional, Sequence

from slipway_driver.tool import answer_of

#: After this time a host whose ranks do not end counts as broken.
LONGEST_SECONDS = 60.0
POLL_SECONDS = 0.25
#: More than the driver itself uses on a GPU, less than any model.
SPARE_MIB = 1024
_QUERY = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
_ANSWER_SECONDS = 20.0

#: GPU index to memory in use, MiB.
Memory = Dict[int, int]


def parse_memory(text: str) -> Memory:
    """Parses lines like `0, 412`."""
    found: Memory = {}
    for line in text.splitlines():
        index, _, used = line.partition(",")
        if index.strip().isdigit() and used.strip().isdigit():
            found[int(index)] = int(used)
    return found


def read_memory() -> Optional[Memory]:
    """Memory in use on every GPU; None if nvidia-smi is missing or does not respond."""
    return parse_memory(answer_of(_QUERY, _ANSWER_SECONDS).text or "") or None


def is_running(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process is running. A zombie does not count, because it holds no resources."""
    try:
        state = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


class Remains:
    """Tracks one host. Created before the ranks start for the first time, to record the GPU memory that other processes use."""

    def __init__(self, read: Callable[[], Optional[Memory]] = read_memory, running: Callable[[int], bool] = is_running) -> None:
        self._read, self._running = read, running
        self._before = read() or {}

    def _excess(self) -> Memory:
        if not self._before:
            return {}
        now = self._read()
        # Without a response no GPU counts as free; health.py checks whether the GPUs still exist.
        if now is None:
            return {index: 0 for index in self._before}
        return {index: used for index, used in now.items() if used > self._before.get(index, 0) + SPARE_MIB}

    def await_gone(
        self, pids: Sequence[int], seconds: float = LONGEST_SECONDS, sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> str:  # fmt: skip
        """Waits until the processes have ended and their GPU memory is free. Returns why the host cannot be used again, "" if it can."""
        deadline = clock() + seconds
        while True:
            left = [pid for pid in pids if self._running(pid)]
            excess = {} if left else self._excess()
            if not left and not excess:
                return ""
            if clock() >= deadline:
                return _complaint(left, excess, seconds)
            sleep(POLL_SECONDS)


def _complaint(pids: Sequence[int], excess: Memory, seconds: float) -> str:
    if pids:
        return "processes %s have not ended within %d s of SIGKILL" % (", ".join(map(str, pids[:5])), seconds)
    held = ", ".join("GPU %d holds %d MiB" % item for item in sorted(excess.items()) if item[1]) or "nvidia-smi does not respond"
    return "%s %d s after the ranks ended" % (held, seconds)
