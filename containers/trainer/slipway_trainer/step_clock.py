"""Measures the duration of a step: from the end of the previous step to its own end, without saves, evaluations and deliberate waits.

It includes the work between steps, which also takes GPU time; excluding it would overstate the throughput.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StepClock:
    """The clock of one rank's training loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began, self._stopped = now(), 0.0

    def begin(self) -> None:
        """Starts the measurement of the next step."""
        self._began, self._stopped = self._now(), 0.0

    def lap(self) -> float:
        """Ends a step and starts the next one. Returns the duration of the step in seconds."""
        now = self._now()
        seconds, self._began, self._stopped = now - self._began - self._stopped, now, 0.0
        return seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Context that does not count as part of a step."""
        at = self._now()
        try:
            yield
        finally:
            self._stopped += self._now() - at
