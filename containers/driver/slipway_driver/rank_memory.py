"""Memory for copies of the ranks' state (`checkpoints.memory`). The first process of the container owns it, so that it survives the ranks
and their driver, and is freed at the end of the job. It is empty until a rank allocates it.

Anonymous files are used because the size of /dev/shm is limited in containers. The ranks of this container open them through /proc.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Dict, Optional

from slipway_driver.job import Job
from slipway_driver.log import log

VARIABLE = "SLIPWAY_MEMORY"


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
