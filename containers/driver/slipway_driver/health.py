"""Whether the ranks may start on this host again after a failure.

NVIDIA only: its GPUs and their uncorrectable memory errors, compared with those at driver start; CUDA hardware errors in a rank's error
message; and what killed ranks still hold. A rank that starts while a previous one holds GPU memory runs out of memory before its first
step. NVIDIA's kernel driver needs seconds, rarely minutes, to destroy a CUDA context.
"""

from __future__ import annotations

import time
from typing import Dict, Optional, Sequence

from slipway_driver import error_lines as patterns
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.gpus import answer_of, gpu_query, rows
from slipway_driver.rank_session import is_running
from slipway_driver.restart_policy import HARDWARE

ECC_QUERY, MEMORY_QUERY = gpu_query("index,ecc.errors.uncorrected.volatile.total"), gpu_query("index,memory.used")
#: nvidia-smi is slow while the CUDA contexts of killed processes are destroyed.
ANSWER_SECONDS, TRIES = 20.0, 2
#: After this time a host whose ranks do not end counts as broken.
LONGEST_SECONDS, POLL_SECONDS = 60.0, 0.25
#: More than the driver itself uses on a GPU, less than any model.
SPARE_MIB = 1024

#: GPU index to a number: uncorrectable errors since the kernel driver was loaded (None if the GPU does not count them), or MiB in use.
Gpus = Dict[int, Optional[int]]
Memory = Dict[int, int]


def parse_gpus(text: str) -> Gpus:
    """Parses lines like `0, 0`; `[N/A]` means that errors are not counted. A lost GPU has no such line."""
    counted = [(index, errors) for index, errors in rows(text, 2) if index.isdigit() and (errors.isdigit() or "N/A" in errors)]
    return {int(index): int(errors) if errors.isdigit() else None for index, errors in counted}


def read_gpus() -> Optional[Gpus]:
    """The current state of the GPUs; None if nvidia-smi is missing or does not respond."""
    for _ in range(TRIES):
        answer = answer_of(ECC_QUERY, ANSWER_SECONDS)
        if not answer.late:
            # If one GPU is lost, nvidia-smi exits with an error but still lists the others.
            return None if answer.text is None else parse_gpus(answer.text)
    return None


def parse_memory(text: str) -> Memory:
    """Parses lines like `0, 412`."""
    return {int(index): int(used) for index, used in rows(text, 2) if index.isdigit() and used.isdigit()}


def read_memory() -> Optional[Memory]:
    """Memory in use on every GPU; None if nvidia-smi is missing or does not respond."""
    return parse_memory(answer_of(MEMORY_QUERY, ANSWER_SECONDS).text or "") or None


def complaint(before: Gpus, now: Optional[Gpus]) -> str:
    """What has deteriorated since `before`; "" if nothing has."""
    if not before:
        return ""
    if now is None:
        return "nvidia-smi no longer responds"
    lost = sorted(set(before) - set(now))
    if lost:
        return "GPU %s is lost" % ", ".join(map(str, lost))
    grown = [index for index, errors in sorted(now.items()) if (errors or 0) > (before.get(index) or 0)]
    if grown:
        return "GPU %s has uncorrectable memory errors" % ", ".join(map(str, grown))
    return ""


class Health:
    """GPU health of one host since its driver started, and the GPU memory that other processes used before its ranks started."""

    def __init__(self) -> None:
        self._before, self._used_before = read_gpus() or {}, read_memory() or {}

    def judged(self, end: Failure, remains: str = "") -> Failure:
        """Returns `end`, or a hardware failure if the host is broken. `remains`: why ranks cannot start here again, "" if they can."""
        named = next(filter(None, map(patterns.HARDWARE.search, [end.reason, *end.lines])), None)
        reason = complaint(self._before, read_gpus() if self._before else None) or (named.group() if named else remains)
        if not reason:
            return end
        why = "%s (%s)" % (reason, end.reason) if end.reason and reason not in end.reason else end.reason or reason
        return Failure(TRY_AGAIN, HARDWARE, end.rank, why, end.lines)

    def _excess(self) -> Memory:
        if not self._used_before:
            return {}
        now = read_memory()
        # Without a response no GPU counts as free; `Health` checks whether the GPUs still exist.
        if now is None:
            return {index: 0 for index in self._used_before}
        return {index: used for index, used in now.items() if used > self._used_before.get(index, 0) + SPARE_MIB}

    def await_gone(self, pids: Sequence[int]) -> str:
        """Waits until the processes have ended and their GPU memory is free. Returns why the host cannot be used again, "" if it can."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while True:
            left = [pid for pid in pids if is_running(pid)]
            excess = {} if left else self._excess()
            if not left and not excess:
                return ""
            if time.monotonic() >= deadline:
                return _held(left, excess)
            time.sleep(POLL_SECONDS)


def _held(pids: Sequence[int], excess: Memory) -> str:
    if pids:
        return "processes %s have not ended within %d s of SIGKILL" % (", ".join(map(str, pids[:5])), LONGEST_SECONDS)
    held = ", ".join("GPU %d holds %d MiB" % item for item in sorted(excess.items()) if item[1]) or "nvidia-smi does not respond"
    return "%s %d s after the ranks ended" % (held, LONGEST_SECONDS)
