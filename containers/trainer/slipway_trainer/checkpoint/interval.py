"""How often to save: Young and Daly's sqrt(2 * cost * time between failures), within sensible bounds.

Failure rate: 6.5 node failures per 1,000 node-days (arXiv 2410.21680, RSC-1), times 3.7 because jobs were measured to fail that much
more often than nodes alone explain (same source).
"""

import math

NODE_FAILURES_PER_DAY = 6.5 / 1000 * 3.7
SHORTEST_MINUTES, LONGEST_MINUTES = 10.0, 60.0


def auto_interval_minutes(blocked_seconds: float, hosts: int) -> float:
    """Minutes between saves that block training for `blocked_seconds` on `hosts` hosts."""
    between_failures_seconds = 86400.0 / (NODE_FAILURES_PER_DAY * max(1, hosts))
    best = math.sqrt(2.0 * max(0.0, blocked_seconds) * between_failures_seconds) / 60.0
    return min(LONGEST_MINUTES, max(SHORTEST_MINUTES, best))
