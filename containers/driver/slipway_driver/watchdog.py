"""Detects that training makes no progress, with time limits until the first step, between steps, and for each declared phase."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from slipway_driver.attempt import Attempt

#: Ranks that are named as silent.
MAX_RANKS = 8


class Watchdog:
    """Processes progress events and reports when the current time limit is exceeded.

    If `may_stop` is False (user code that shows no progress), a verdict is only an alert: the driver prints it once and continues. With
    `shows_progress`, this changes with the first loss or bar, otherwise with the first step.
    """

    def __init__(
        self,
        startup_seconds: float,
        silence_seconds: float,
        may_stop: bool,
        now: float,
        shows_progress: Optional[bool] = None,
        steps: Optional[int] = None,
    ) -> None:
        """`steps`: how many the run file requests; None if that is not known."""
        self._startup, self._silence, self._steps = startup_seconds, silence_seconds, steps
        #: Whether a hang may end the ranks: the code shows its progress, or a step was seen.
        self.may_stop = may_stop
        self._phases: Dict[str, float] = {}
        self._since = now
        self.step: Optional[int] = None
        #: The difference between the last two steps that were seen.
        self.stride = 1
        #: Whether the code shows its progress by design.
        self.shows_progress = may_stop if shows_progress is None else shows_progress
        self._worked = False
        self._stall = ""

    @property
    def phase(self) -> str:
        """The current phase, for the heartbeat."""
        if self._phases:
            return max(self._phases, key=lambda name: self._phases[name])
        return "start" if self.step is None else "train"

    def feed(self, event: Mapping[str, Any], now: float) -> None:
        """Processes one event of ``parse_event``, read at `now` (seconds of the monotonic clock)."""
        kind = event.get("event")
        if kind == "step":
            step = event["step"]
            self.stride = max(1, step - (step if self.step is None else self.step))
            self.step = step
            self.may_stop, self._stall = True, ""
            self._since = now
        elif kind == "stall" and self.step is not None:
            self._stall = _stall_of(event, self.step)
        elif kind == "phase":
            name = event.get("name", "phase")
            if event.get("state", "begin") == "end" or event.get("end"):
                self._phases.pop(name, None)
            else:
                usual = self._startup if self.step is None else self._silence
                self._phases[name] = now + (event.get("budgetSeconds") or usual)
            self._since = now
        elif kind in ("checkpoint", "restart", "metric", "bar"):
            self._worked = self._worked or kind in ("metric", "bar")
            self.may_stop = self.may_stop or (self._worked and self.shows_progress)
            self._since = now

    def verdict(self, now: float) -> Optional[str]:
        """The reason why this counts as a hang; None if there is no hang."""
        if self._stall:
            return self._stall
        if self._phases:
            name, end = min(self._phases.items(), key=lambda item: item[1])
            # During a phase, both the limit of the phase and the limit between steps must be exceeded.
            return "phase %s exceeded its time limit" % name if now > end and now - self._since > self._silence else None
        if self.step is None:
            if now - self._since <= self._startup:
                return None
            if self._worked:
                return "no progress for %d s, and no step so far" % (now - self._since)
            return "no first step within %d s" % self._startup
        if now - self._since > self._silence:
            all_done = self._steps is not None and self.step >= self._steps
            end = "; all %s steps are done, and the program has not ended" % self._steps if all_done else ""
            return "no progress for %d s after step %d%s" % (now - self._since, self.step, end)
        return None


def _stall_of(event: Mapping[str, Any], step: int) -> str:
    """The reason of a hang that the trainer reports. `step`: the last one that was seen."""
    seen = event.get("step", step)
    silent = event.get("silent")
    ranks = ", ".join(map(str, silent[:MAX_RANKS])) if isinstance(silent, list) and all(isinstance(rank, int) for rank in silent) else ""
    more = " and %d more" % (len(silent) - MAX_RANKS) if ranks and len(silent) > MAX_RANKS else ""
    who = "; rank %s%s did not respond" % (ranks, more) if ranks else ""
    return "no progress for %d s after step %d, from which a restart continues%s" % (event.get("seconds", 0), seen, who)


def steps_of(attempt: Attempt) -> Optional[int]:
    """`training.steps` of the run file; None without it, and for a smoke run, in which the script decides how far it goes."""
    training = attempt.job.raw.get("training")
    steps = training.get("steps") if isinstance(training, dict) else None
    return steps if isinstance(steps, int) and not attempt.environ.get("SLIPWAY_SMOKE") else None


def watchdog_of(attempt: Attempt, now: float) -> Watchdog:
    """The watchdog with the time limits of the run file, or with SLIPWAY_WATCHDOG_SECONDS for all of them."""
    job = attempt.job
    override = attempt.environ.get("SLIPWAY_WATCHDOG_SECONDS")
    startup = float(override) if override else job.startup_minutes * 60
    silence = float(override) if override else job.silence_minutes * 60
    named = job.progress_format not in ("auto", "none")
    # The lines of a named format may never come: a bar that is off, or a logger of its own.
    may_stop = job.builtin_module is not None or job.step_regex is not None
    return Watchdog(startup, silence, may_stop, now, shows_progress=may_stop or named, steps=steps_of(attempt))
