"""Whether a start that ended with exit code 0 has done what it was asked for."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from slipway_driver.attempt import Attempt
from slipway_driver.watchdog import Watchdog, steps_of

LONGEST_REASON = 300


def ended_early(attempt: Attempt, watchdog: Optional[Watchdog], records: Sequence[Mapping[str, Any]]) -> str:
    """Why the end was early, "" if it was not. `watchdog`: that of a host that has seen all steps."""
    steps, seen = steps_of(attempt), watchdog.step if watchdog else None
    if watchdog and seen is not None and steps is not None:
        return "" if watchdog.has_done(steps) else "exit code 0 after step %d of %d" % (seen, steps)
    unhandled = next((record["unhandled"] for record in records if record.get("unhandled")), "")
    if unhandled:
        return ("exit code 0 after an unhandled error: %s" % unhandled)[:LONGEST_REASON]
    left = next((record["left"] for record in records if record.get("left")), "")
    if left:
        return ("exit code 0 while a program that it had started was still running: %s" % left)[:LONGEST_REASON]
    # A resumed start may find that nothing is left to do.
    if watchdog and steps is not None and watchdog.shows_progress and not attempt.environ.get("SLIPWAY_RESUME_FROM"):
        return "exit code 0 before step 1 of %d" % steps
    return ""
