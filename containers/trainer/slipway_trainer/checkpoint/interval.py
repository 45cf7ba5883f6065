"""The checkpoint interval: Young and Daly's sqrt(2 * cost * time between failures), within limits.

The failure rate is unknown at first: 3.8 node failures per 1,000 node-days were measured for Llama 3 405B (arXiv 2407.21783), and 24 job
failures for RSC-1 (6.5 node failures times 3.7, arXiv 2410.21680). The prior is their geometric mean with the weight of two observed
failures. It is updated with the run's own failures: a gamma prior over a Poisson rate.
"""

import math
from dataclasses import dataclass

PRIOR_FAILURES = 2.0
PRIOR_PER_NODE_DAY = math.sqrt(3.8e-3 * 24.05e-3)
SHORTEST_MINUTES, LONGEST_MINUTES = 3.0, 60.0
#: Share of the failures of a host after which the job ends, so that copies in memory are lost: the machine itself, and not a device, in 32
#: of 258 (arXiv 2407.21783, table 5).
LOST_JOBS = 32 / 258
#: Highest share of the time that copies in memory may cost.
MAX_OVERHEAD = 0.01


@dataclass(frozen=True)
class History:
    """Previous failures of the run, of every kind, and the node-days in which they occurred."""

    failures: float = 0.0
    node_days: float = 0.0

    def of_jobs(self, restarts: float) -> "History":
        """The part that copies in memory do not cover: failures that ended a job. `restarts`: restarts in place, which `failures` includes.
        The prior counts in the same proportion, as further node-days without failures."""
        calm = PRIOR_FAILURES * (1.0 / LOST_JOBS - 1.0) / PRIOR_PER_NODE_DAY
        return History(max(0.0, self.failures - restarts), self.node_days + calm)

    @property
    def failures_per_node_day(self) -> float:
        """Expected failures per host and day, from the prior and the run's own history."""
        return (PRIOR_FAILURES + self.failures) / (PRIOR_FAILURES / PRIOR_PER_NODE_DAY + self.node_days)


def auto_interval_minutes(blocked_seconds: float, hosts: int, history: History = History()) -> float:
    """Optimal minutes between saves that block training for `blocked_seconds` on `hosts` hosts."""
    best = _optimal_seconds(blocked_seconds, hosts, history) / 60.0
    return min(LONGEST_MINUTES, max(SHORTEST_MINUTES, best))


def auto_every_steps(blocked_seconds: float, step_seconds: float, hosts: int, history: History = History()) -> int:
    """Optimal number of steps between copies in memory, each of which blocks training for `blocked_seconds`; they cost at most
    MAX_OVERHEAD."""
    seconds = max(_optimal_seconds(blocked_seconds, hosts, history), blocked_seconds / MAX_OVERHEAD)
    return max(1, math.ceil(seconds / max(step_seconds, 1e-3) - 0.5))


def _optimal_seconds(blocked_seconds: float, hosts: int, history: History) -> float:
    between_failures_seconds = 86400.0 / (history.failures_per_node_day * max(1, hosts))
    return math.sqrt(2.0 * max(0.0, blocked_seconds) * between_failures_seconds)
