"""Checks after a failure whether this host's accelerators are broken, because the ranks must not start on a broken host again.

NVIDIA only: the number of GPUs and of uncorrectable memory errors from nvidia-smi (https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-22),
compared with the values at driver start, and CUDA hardware errors in a rank's error message.
"""

from __future__ import annotations

from typing import Callable, Dict, Optional, Sequence

from slipway_driver import error_lines as patterns
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.restart_policy import HARDWARE
from slipway_driver.tool import answer_of

ECC_QUERY = ("nvidia-smi", "--query-gpu=index,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader,nounits")
#: nvidia-smi is slow while the CUDA contexts of killed processes are destroyed.
ANSWER_SECONDS, TRIES = 20.0, 2

#: GPU index to the number of uncorrectable errors since the kernel driver was loaded; None if the GPU does not count them.
Gpus = Dict[int, Optional[int]]


def parse_gpus(text: str) -> Gpus:
    """Parses lines like `0, 0`; `[N/A]` means that errors are not counted. A lost GPU has no such line."""
    found: Gpus = {}
    for line in text.splitlines():
        index, _, errors = line.partition(",")
        if index.strip().isdigit():
            count = errors.strip()
            if not count.isdigit() and "N/A" not in count:
                continue
            found[int(index)] = int(count) if count.isdigit() else None
    return found


def read_gpus() -> Optional[Gpus]:
    """The current state of the GPUs; None if nvidia-smi is missing or does not respond."""
    for _ in range(TRIES):
        answer = answer_of(ECC_QUERY, ANSWER_SECONDS)
        if not answer.late:
            # If one GPU is lost, nvidia-smi exits with an error but still lists the others.
            return None if answer.text is None else parse_gpus(answer.text)
    return None


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


def hardware_line(lines: Sequence[str]) -> str:
    """The hardware problem in the error message of a rank; "" if there is none."""
    for line in lines:
        found = patterns.HARDWARE.search(line)
        if found:
            return found.group(0)
    return ""


class Health:
    """GPU health of one host since its driver started."""

    def __init__(self, read: Callable[[], Optional[Gpus]] = read_gpus) -> None:
        self._read = read
        self._before = read() or {}

    def judged(self, end: Failure, remains: str = "") -> Failure:
        """Returns `end`, or a hardware failure if the host is broken. `remains`: why the ranks cannot start again on this host although its
        GPUs are healthy, "" if they can."""
        reason = complaint(self._before, self._read() if self._before else None) or hardware_line([end.reason, *end.lines]) or remains
        if not reason:
            return end
        why = "%s (%s)" % (reason, end.reason) if end.reason and reason not in end.reason else end.reason or reason
        return Failure(TRY_AGAIN, HARDWARE, end.rank, why, end.lines)
