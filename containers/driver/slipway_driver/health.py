"""Whether this host's own accelerators are broken: asked after a round that failed, because nothing must start on such a host again.

NVIDIA only: count and uncorrectable memory errors as nvidia-smi tells them (https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-22),
compared with what it told when the host began, and the words of CUDA in a rank's error.
"""

from __future__ import annotations

import subprocess
from typing import Callable, Dict, Optional, Sequence

from slipway_driver import error_lines as says
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.restart_policy import HARDWARE

ECC_QUERY = ("nvidia-smi", "--query-gpu=index,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader,nounits")
#: nvidia-smi is slow while the contexts of killed processes are torn down.
ANSWER_SECONDS, TRIES = 20.0, 2

#: Index of each GPU that answers, with its uncorrectable errors since the driver was loaded; None = it does not count them.
Gpus = Dict[int, Optional[int]]


def parse_gpus(text: str) -> Gpus:
    """The answer to the query: `0, 0` a line; `[N/A]` where errors are not counted. A GPU that is lost has no such line."""
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
    """None when nvidia-smi is not there or does not answer."""
    for _ in range(TRIES):
        try:
            done = subprocess.run(ECC_QUERY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_SECONDS)
        except OSError:
            return None
        except subprocess.TimeoutExpired:
            continue
        # It fails for all when one GPU is lost, but still lists the others.
        return parse_gpus(done.stdout.decode("utf-8", "replace"))
    return None


def complaint(before: Gpus, now: Optional[Gpus]) -> str:
    """What has become worse since `before`; "" when nothing has."""
    if not before:
        return ""
    if now is None:
        return "nvidia-smi does not answer any more"
    lost = sorted(set(before) - set(now))
    if lost:
        return "GPU %s is gone" % ", ".join(map(str, lost))
    grown = [index for index, errors in sorted(now.items()) if (errors or 0) > (before.get(index) or 0)]
    if grown:
        return "GPU %s has uncorrectable memory errors" % ", ".join(map(str, grown))
    return ""


def said(lines: Sequence[str]) -> str:
    """The hardware problem in the error message of a rank; "" if there is none."""
    for line in lines:
        found = says.HARDWARE.search(line)
        if found:
            return found.group(0)
    return ""


class Health:
    """Of one host, from the start of its driver on."""

    def __init__(self, read: Callable[[], Optional[Gpus]] = read_gpus) -> None:
        self._read = read
        self._before = read() or {}

    def judged(self, end: Failure, remains: str = "") -> Failure:
        """The same end, or that of a broken host. `remains`: why nothing can start here although its GPUs are well, "" when it can."""
        reason = complaint(self._before, self._read() if self._before else None) or said([end.reason, *end.lines]) or remains
        if not reason:
            return end
        why = "%s (%s)" % (reason, end.reason) if end.reason and reason not in end.reason else end.reason or reason
        return Failure(TRY_AGAIN, HARDWARE, end.rank, why, end.lines)
