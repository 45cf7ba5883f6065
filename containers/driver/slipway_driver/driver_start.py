"""Memory that outlives a driver and its ranks: what the next driver of the container takes over from one that a signal has ended, and the
copies of the ranks' state (`checkpoints.memory`).

The first process of the container owns it. Anonymous files are used because the size of /dev/shm is limited in containers. The ranks open
theirs through /proc. They are empty until a rank allocates them, and are freed at the end of the job.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any, Dict, NamedTuple, Optional

from slipway_driver.job import Job
from slipway_driver.log import log

VARIABLE = "SLIPWAY_MEMORY"


class DriverStart(NamedTuple):
    """`number`: 0 for the first driver of its container; `started_at`: when that started; `kept`: the anonymous file of `Decisions`."""

    number: int = 0
    started_at: float = time.time()
    kept: Optional[int] = None


class Decisions:
    """What the deciding host has decided, for the next driver of the host. `facts` is empty before the first decision."""

    def __init__(self, file: Optional[int] = None) -> None:
        self._file = file
        self.facts: Dict[str, Any] = {}
        if file is not None:
            with suppress(ValueError):
                # What follows is the end of a longer text that a killed driver had no time to cut off.
                self.facts = dict(json.JSONDecoder().raw_decode(os.pread(file, os.fstat(file).st_size, 0).decode())[0])

    def keep(self, **facts: Any) -> None:
        """Adds facts, and writes all of them."""
        self.facts.update(facts)
        if self._file is not None:
            data = json.dumps(self.facts).encode()
            with suppress(OSError):
                os.ftruncate(self._file, os.pwrite(self._file, data, 0))


def anonymous_file(name: str) -> Optional[int]:
    """The descriptor of a file in memory; None where there are none."""
    with suppress(AttributeError, OSError):
        return os.memfd_create(name)
    return None


def memory_variables(job: Job) -> Dict[str, str]:
    """Creates the memory of each rank of this host; none if the run keeps no copies."""
    if not (job.raw.get("checkpoints") or {}).get("memory"):
        return {}
    files = [anonymous_file("slipway-rank-%d" % rank) for rank in range(job.processes_per_host)]
    if None in files:
        log("the state is not kept in memory: this kernel has no anonymous files")
        return {}
    return {VARIABLE: ":".join("/proc/%d/fd/%d" % (os.getpid(), file) for file in files)}
