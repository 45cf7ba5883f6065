"""How often the ranks may start again in place: so many times within any hour, without a limit over the attempt.

A limit over the whole attempt would run out on the healthiest of long runs: at 512 hosts something that a restart fixes happens every
few hours. What repeats itself at once is caught by the limit within the hour, and by the rule that every restart must lead to a later step.
"""

from __future__ import annotations

import time
from typing import Callable, List

WINDOW_SECONDS = 3600.0


class RestartBudget:
    """`most` restarts within any hour."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._taken: List[float] = []

    def left(self) -> int:
        """How many more there may be now."""
        since = self._clock() - WINDOW_SECONDS
        self._taken = [at for at in self._taken if at > since]
        return self._most - len(self._taken)

    def take(self) -> None:
        """Books one restart at the present time."""
        self._taken.append(self._clock())
