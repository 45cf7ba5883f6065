"""Whether a start that ended with exit code 0 has done what it was asked for."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from slipway_driver.attempt import Attempt
from slipway_driver.watchdog import Watchdog

LONGEST_REASON = 300


def ended_early(attempt: Attempt, watchdog: Optional[Watchdog], records: Sequence[Mapping[str, Any]]) -> str:
    """Why the end was early, "" if it was not. `watchdog`: that of a host that has seen all steps."""
    steps, seen = _steps_of(attempt), watchdog.step if watchdog else None
    if watchdog and seen is not None and steps is not None:
        # The last step may be numbered steps - 1, and a script may print only every n-th step.
        return "" if seen + watchdog.stride >= steps else "exit code 0 after step %d of %d" % (seen, steps)
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


def _steps_of(attempt: Attempt) -> Optional[int]:
    """`training.steps` of the run file; None without it, and for a smoke run, in which the script decides how far it goes."""
    training = attempt.job.raw.get("training")
    steps = training.get("steps") if isinstance(training, dict) else None
    return steps if isinstance(steps, int) and not attempt.environ.get("SLIPWAY_SMOKE") else None
