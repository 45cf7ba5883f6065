"""Limits restarts in place: a maximum number per hour, with no limit for the whole attempt.

A limit for the whole attempt would end long, healthy runs: on 512 hosts, a failure that a restart fixes happens every few hours. Repeated
failures are stopped by the hourly limit, and by the rule that every start must reach a later step.
"""

from __future__ import annotations

import time
from typing import Callable, List

WINDOW_SECONDS = 3600.0


class RestartBudget:
    """Allows `most` restarts within any hour."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        #: When the restarts of the last hour were, by the clock.
        self.taken: List[float] = []

    def left(self) -> int:
        """Number of restarts that are allowed now."""
        since = self._clock() - WINDOW_SECONDS
        self.taken = [at for at in self.taken if at > since]
        return self._most - len(self.taken)

    def take(self) -> None:
        """Records a restart at the current time."""
        self.taken.append(self._clock())
