"""The checkpoint interval: Young and Daly's sqrt(2 * cost * time between failures), within limits.

The failure rate is unknown at first. The prior is the geometric mean of the rates of Llama 3 405B and of the jobs on RSC-1, with the
weight of two observed failures. It is updated with the run's own failures: a gamma prior over a Poisson rate.
"""

import math
from dataclasses import dataclass

#: Failures of one node per day: of Llama 3 405B, 419 interruptions in 54 days on 2,048 nodes (arXiv 2407.21783); on Meta's RSC-1 of nodes,
#: and of jobs, which failed 3.7 times as often (arXiv 2410.21680). Read 2026-11-20.
LLAMA3_PER_NODE_DAY, RSC1_PER_NODE_DAY, RSC1_JOBS_PER_NODE_DAY = 3.8e-3, 6.5e-3, 24.05e-3
PRIOR_FAILURES = 2.0
PRIOR_PER_NODE_DAY = math.sqrt(LLAMA3_PER_NODE_DAY * RSC1_JOBS_PER_NODE_DAY)
SHORTEST_MINUTES, LONGEST_MINUTES = 3.0, 60.0
#: Share of the failures of a node after which its driver is gone, so that no spare host helps: maintenance of the machine, and not a device
#: (148 GPU, 72 HBM3, 6 silent data corruption), in 32 of 258 (arXiv 2407.21783, table 5).
LOST_MACHINES = 32 / 258
#: Share of all failures that are those of a node: 258 of 354 with a known cause in Llama 3, and of RSC-1; their geometric mean.
NODE_SHARE = math.sqrt(258 / 354 * RSC1_PER_NODE_DAY / RSC1_JOBS_PER_NODE_DAY)
#: By how much a save slows training down while it is written: what is asked of asynchronous checkpoints at most is 2 to 5 %
#: (NVIDIA-NeMo/Automodel#616, read 2026-11-29). Not measured on GPUs.
WRITING_SLOWDOWN = 0.02
#: Highest share of the time that copies in memory may cost.
MAX_OVERHEAD = 0.01


def ended_share(spares: bool) -> float:
    """Expected share of all failures that end the job, with or without spare hosts; after the others, its ranks start again in place."""
    return NODE_SHARE * (LOST_MACHINES if spares else 1.0)


@dataclass(frozen=True)
class History:
    """Previous failures of the run, of every kind, and the node-days in which they occurred."""

    failures: float = 0.0
    node_days: float = 0.0

    def of_jobs(self, restarts: float, spares: bool) -> "History":
        """The part that copies in memory do not cover: failures that ended a job. `restarts`: restarts in place, which `failures` includes;
        `spares`: whether spare hosts replace broken ones. The prior counts in the same proportion, as node-days without failures."""
        calm = PRIOR_FAILURES * (1.0 / ended_share(spares) - 1.0) / PRIOR_PER_NODE_DAY
        return History(max(0.0, self.failures - restarts), self.node_days + calm)

    @property
    def failures_per_node_day(self) -> float:
        """Expected failures per host and day, from the prior and the run's own history."""
        return (PRIOR_FAILURES + self.failures) / (PRIOR_FAILURES / PRIOR_PER_NODE_DAY + self.node_days)


def auto_interval_minutes(blocked_seconds: float, written_seconds: float, hosts: int, history: History = History()) -> float:
    """Optimal minutes between saves on `hosts` hosts that block training for `blocked_seconds` and take `written_seconds`."""
    best = _optimal_seconds(blocked_seconds + WRITING_SLOWDOWN * written_seconds, hosts, history) / 60.0
    return min(LONGEST_MINUTES, max(SHORTEST_MINUTES, best))


def auto_every_steps(blocked_seconds: float, step_seconds: float, hosts: int, history: History = History()) -> int:
    """Optimal number of steps between copies in memory, each of which blocks training for `blocked_seconds`; they cost at most
    MAX_OVERHEAD."""
    seconds = max(_optimal_seconds(blocked_seconds, hosts, history), blocked_seconds / MAX_OVERHEAD)
    return max(1, math.ceil(seconds / max(step_seconds, 1e-3) - 0.5))


def _optimal_seconds(blocked_seconds: float, hosts: int, history: History) -> float:
    between_failures_seconds = 86400.0 / (history.failures_per_node_day * max(1, hosts))
    return math.sqrt(2.0 * max(0.0, blocked_seconds) * between_failures_seconds)
