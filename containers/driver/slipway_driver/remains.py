"""What killed ranks leave behind for a while: processes whose memory is being torn down, and memory of their GPUs.

A rank that starts while the one before it still holds the GPU runs out of memory before its first step. The kernel's NVIDIA driver needs
seconds, rarely minutes, to tear a context down (https://docs.nvidia.com/deploy/nvidia-smi/: memory.used; 2026-11-22).
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

#: Until a host whose ranks do not go counts as broken.
LONGEST_SECONDS = 60.0
POLL_SECONDS = 0.25
#: More than the driver itself keeps on a GPU, less than any model.
SPARE_MIB = 1024
_QUERY = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
_ANSWER_SECONDS = 20.0

#: MiB in use by the index of a GPU.
Memory = Dict[int, int]


def parse_memory(text: str) -> Memory:
    """The answer to the query: `0, 412` a line."""
    found: Memory = {}
    for line in text.splitlines():
        index, _, used = line.partition(",")
        if index.strip().isdigit() and used.strip().isdigit():
            found[int(index)] = int(used)
    return found


def read_memory() -> Optional[Memory]:
    """Memory in use on every GPU; None where nvidia-smi is missing or does not answer."""
    try:
        done = subprocess.run(_QUERY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_memory(done.stdout.decode("utf-8", "replace")) or None


def is_running(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process still exists. One that only waits to be reaped does not count: it holds nothing."""
    try:
        state = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def pids_in(state: Path) -> List[int]:
    """Process ids of all ranks that a launch has started here, ended or not."""
    found = []
    for path in sorted(state.glob("rank-*.pid")):
        try:
            found.append(int(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return found


class Remains:
    """Of one host. Made before the first launch, so that what others use of the GPUs is known."""

    def __init__(self, read: Callable[[], Optional[Memory]] = read_memory, running: Callable[[int], bool] = is_running) -> None:
        self._read, self._running = read, running
        self._before = read() or {}

    def _excess(self) -> Memory:
        if not self._before:
            return {}
        now = self._read()
        # Without an answer nothing is free; whether the GPUs are still there is asked elsewhere (health.py).
        if now is None:
            return {index: 0 for index in self._before}
        return {index: used for index, used in now.items() if used > self._before.get(index, 0) + SPARE_MIB}

    def await_gone(
        self, pids: Sequence[int], seconds: float = LONGEST_SECONDS, sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> str:  # fmt: skip
        """Waits until the processes have ended and their GPUs' memory is free; why the host cannot be used again, "" when it can."""
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
    held = ", ".join("GPU %d holds %d MiB" % item for item in sorted(excess.items()) if item[1]) or "nvidia-smi does not answer"
    return "%s %d s after the ranks ended" % (held, seconds)
