"""How long a step takes: from the end of the one before to its own, without saves, evaluations and deliberate waits.

What a loop does between steps costs GPU time as well; a throughput that leaves it out flatters itself.
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
        """The next step begins here."""
        self._began, self._stopped = self._now(), 0.0

    def lap(self) -> float:
        """A step ends here, and the next one begins: the seconds that it took."""
        now = self._now()
        seconds, self._began, self._stopped = now - self._began - self._stopped, now, 0.0
        return seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """What happens inside is no part of a step."""
        at = self._now()
        try:
            yield
        finally:
            self._stopped += self._now() - at
