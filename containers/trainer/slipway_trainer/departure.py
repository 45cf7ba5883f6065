"""Reasons to leave early: SIGTERM, the deadline of the attempt, and the control plane's request to hand over."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any


class Departure:
    """Remembers a SIGTERM, knows when the deadline is too near for another step and a save, and sees the request to hand over.

    `request` is the file that the driver writes when the control plane asks; empty = it never does.
    """

    def __init__(self, deadline: float | None, request: str = "", clock: Callable[[], float] = time.time) -> None:
        self._deadline, self._request, self._clock = deadline, request, clock
        self.asked = False

    def listen(self) -> None:
        """From now on SIGTERM means: save and leave."""

        def on_sigterm(_number: int, _frame: Any) -> None:
            self.asked = True

        signal.signal(signal.SIGTERM, on_sigterm)

    def due(self, step_seconds: float, save_seconds: float) -> bool:
        """Whether the attempt must end soon: asked to, or with room for only two more steps and two saves after the one at hand and the one
        that is launched before the result is read."""
        if self._request and os.path.exists(self._request):
            return True
        if self._deadline is None:
            return False
        return self._clock() + 4 * step_seconds + 2 * save_seconds > self._deadline
