"""Memory for copies of the ranks' state (`checkpoints.memory`). The driver owns it, so that it survives the ranks, and is freed with the
driver. It is empty until a rank allocates it.

Anonymous files are used because the size of /dev/shm is limited in containers. The ranks of this container open them through /proc.
"""

from __future__ import annotations

import os
from typing import Dict

from slipway_driver.job import Job
from slipway_driver.log import log

VARIABLE = "SLIPWAY_MEMORY"


def memory_variables(job: Job) -> Dict[str, str]:
    """Creates the memory of each rank of this host; none if the run keeps no copies."""
    if job.builtin_module is None or not (job.raw.get("checkpoints") or {}).get("memory"):
        return {}
    try:
        files = [os.memfd_create("slipway-rank-%d" % rank) for rank in range(job.processes_per_host)]
    except (AttributeError, OSError) as error:
        log("the state is not kept in memory: %s" % error)
        return {}
    return {VARIABLE: ":".join("/proc/%d/fd/%d" % (os.getpid(), file) for file in files)}
