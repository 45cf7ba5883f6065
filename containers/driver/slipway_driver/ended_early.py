"""Whether a start that ended with exit code 0 has done what it was asked for."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from slipway_driver.attempt import Attempt
from slipway_driver.watchdog import Watchdog

LONGEST_REASON = 300


def ended_early(attempt: Attempt, watchdog: Optional[Watchdog], records: Sequence[Mapping[str, Any]]) -> str:
    """Why the end was early, "" if it was not. `watchdog`: that of the first host, which alone sees the steps of all hosts."""
    steps = attempt.job.raw.get("training", {}).get("steps") if isinstance(attempt.job.raw.get("training"), dict) else None
    seen = watchdog.step if watchdog else None
    if watchdog and seen is not None and isinstance(steps, int):
        # The last step may be numbered steps - 1, and a script may print only every n-th step.
        return "" if seen + watchdog.stride >= steps else "exit code 0 after step %d of %d" % (seen, steps)
    unhandled = next((record["unhandled"] for record in records if record.get("unhandled")), "")
    if unhandled:
        return ("exit code 0 after an unhandled error: %s" % unhandled)[:LONGEST_REASON]
    # A resumed start may find that nothing is left to do.
    if watchdog and isinstance(steps, int) and watchdog.shows_progress and not attempt.environ.get("SLIPWAY_RESUME_FROM"):
        return "exit code 0 before step 1 of %d" % steps
    return ""
