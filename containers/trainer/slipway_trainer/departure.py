"""Reasons to leave early: SIGTERM, and the deadline of the attempt."""

import signal
import time
from collections.abc import Callable
from typing import Any


class Departure:
    """Remembers a SIGTERM and knows when the deadline is too near for another step and a save."""

    def __init__(self, deadline: float | None, clock: Callable[[], float] = time.time) -> None:
        self._deadline, self._clock = deadline, clock
        self.asked = False

    def listen(self) -> None:
        """From now on SIGTERM means: save and leave."""

        def on_sigterm(_number: int, _frame: Any) -> None:
            self.asked = True

        signal.signal(signal.SIGTERM, on_sigterm)

    def due(self, step_seconds: float, save_seconds: float) -> bool:
        """Whether the attempt must end after the step at hand, with room for two more of them and two saves."""
        if self._deadline is None:
            return False
        return self._clock() + 3 * step_seconds + 2 * save_seconds > self._deadline
