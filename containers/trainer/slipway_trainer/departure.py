"""Reasons to end an attempt early: SIGTERM, its deadline, and the control plane's hand-over request."""

import os
import signal
import time
from collections.abc import Callable


class Departure:
    """Records SIGTERM, checks the deadline, and detects the hand-over request.

    `request`: the file that the driver writes on a hand-over request; empty = none.
    """

    def __init__(self, deadline: float | None, request: str = "", clock: Callable[[], float] = time.time) -> None:
        self._deadline, self._request, self._clock = deadline, request, clock
        self.requested = False

    def listen(self) -> None:
        """Installs a SIGTERM handler that sets `requested`."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: setattr(self, "requested", True))

    def due(self, step_seconds: float, save_seconds: float) -> bool:
        """Whether the attempt must save and exit now: on a hand-over request, or if the time until the deadline is only sufficient for the
        current step, the step that is launched before its result is read, two more steps, and two saves."""
        if self._request and os.path.exists(self._request):
            return True
        if self._deadline is None:
            return False
        return self._clock() + 4 * step_seconds + 2 * save_seconds > self._deadline
