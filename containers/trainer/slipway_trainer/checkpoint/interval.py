"""How often to save: Young and Daly's sqrt(2 * cost * time between failures), within sensible bounds.

The failure rate is not known beforehand: nodes alone fail 3.8 times in 1,000 node-days (Llama 3 405B, arXiv 2407.21783), jobs were
measured to fail 24 times (RSC-1, 6.5 node failures times 3.7, arXiv 2410.21680). A run begins with the geometric mean of the two, weighed
as if it had been seen over two failures, and learns from its own: a gamma prior over a Poisson rate.
"""

import math
from dataclasses import dataclass

PRIOR_FAILURES = 2.0
PRIOR_PER_NODE_DAY = math.sqrt(3.8e-3 * 24.05e-3)
SHORTEST_MINUTES, LONGEST_MINUTES = 3.0, 60.0


@dataclass(frozen=True)
class History:
    """What happened to this run before: failures of every kind, and the node-days in which they came."""

    failures: float = 0.0
    node_days: float = 0.0

    @property
    def failures_per_node_day(self) -> float:
        """Expected failures of one host in a day, from what the run has seen and from before it."""
        return (PRIOR_FAILURES + self.failures) / (PRIOR_FAILURES / PRIOR_PER_NODE_DAY + self.node_days)


def auto_interval_minutes(blocked_seconds: float, hosts: int, history: History = History()) -> float:
    """Minutes between saves that block training for `blocked_seconds` on `hosts` hosts."""
    between_failures_seconds = 86400.0 / (history.failures_per_node_day * max(1, hosts))
    best = math.sqrt(2.0 * max(0.0, blocked_seconds) * between_failures_seconds) / 60.0
    return min(LONGEST_MINUTES, max(SHORTEST_MINUTES, best))
