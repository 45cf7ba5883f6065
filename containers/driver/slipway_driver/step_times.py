"""Step times of every start of an attempt's ranks, and the phases before its first step, by this host's clock. The run's time accounting is
computed from them."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from slipway_driver.newest_checkpoint import step_in

#: Number of newest starts in the heartbeat; the control plane stores older ones.
MAX_IN_HEARTBEAT = 8


@dataclasses.dataclass
class StartTimes:
    """One start of the ranks: 0 is the first, each restart in place increments the number. Times are epoch seconds."""

    number: int
    first_step: Optional[int] = None
    first_step_at: Optional[float] = None
    step: Optional[int] = None
    step_at: Optional[float] = None
    ended_at: Optional[float] = None
    #: When the ranks were started; None on a host that was a spare.
    began_at: Optional[float] = None
    #: Seconds before the first step by phase: `stop` (the ranks of the start before had ended), `prepare` and the phases of the trainer.
    phases: Dict[str, float] = dataclasses.field(default_factory=dict)
    #: Where the state came from, and the step of that state, as the trainer says it.
    source: Optional[str] = None
    resumed: int = 0
    #: The checkpoint that the ranks were given, for trainers that say nothing of it.
    resume_from: str = ""

    def facts(self) -> Dict[str, Any]:
        """The fields of the heartbeat: times in epoch seconds, None for events that have not happened."""
        return {
            "number": self.number,
            "firstStep": self.first_step,
            "firstStepAt": self.first_step_at,
            "step": self.step,
            "stepAt": self.step_at,
            "endedAt": self.ended_at,
            **({"phases": self.phases} if self.first_step is not None else {}),
        }

    def feed(self, event: Mapping[str, Any], now: float) -> None:
        """Records an event before the first step. What no phase covers is `prepare`."""
        kind, name = event.get("event"), str(event.get("name"))
        if kind == "resume":
            self.source, self.resumed = event.get("source"), int(event.get("step") or 0)
        elif kind == "phase" and event.get("state") == "end":
            self._count(name, now)
        elif kind in ("phase", "step"):
            self._count("prepare", now)

    def resumed_step(self) -> Optional[int]:
        """The step that this start went on from; None if it is not known. Steps may have passed before the first one that was seen."""
        first = self.first_step or 0
        given = step_in(Path(self.resume_from).name) if self.resume_from else 0
        if self.source is not None:
            return self.resumed
        if first <= max(1, given or 0):
            return max(0, first - 1)  # It has begun at step 0, or with an older checkpoint.
        return given or None

    def _count(self, phase: str, now: float) -> None:
        if self.began_at is not None:
            before = sum(seconds for name, seconds in self.phases.items() if name != "stop")
            seconds = round(now - self.began_at - before, 3)
            if seconds:
                self.phases[phase] = round(self.phases.get(phase, 0.0) + seconds, 3)


class StepTimes:
    """Step times over all starts of an attempt, including restarts in place."""

    def __init__(self) -> None:
        self._all: List[StartTimes] = []
        self._lock = threading.Lock()
        #: Called at the first step of each start, to write the heartbeat without waiting for its interval.
        self.on_first_step: Callable[[], None] = lambda: None

    def begin(self, number: int) -> None:
        """Records that the ranks of a start are about to be started; the first has number 0."""
        with self._lock:
            self._all.append(StartTimes(number))

    def started(self, now: float, resume_from: str = "") -> None:
        """Records that the ranks of the newest start are being started, from a checkpoint if there is one."""
        with self._lock:
            start, before = self._all[-1], self._all[-2] if len(self._all) > 1 else None
            start.began_at, start.resume_from = now, resume_from
            if before is not None and before.ended_at is not None:
                start.phases["stop"] = round(now - before.ended_at, 3)

    def end(self, now: float) -> None:
        """Records that the ranks of the newest start have ended."""
        with self._lock:
            if self._all and self._all[-1].ended_at is None:
                self._all[-1].ended_at = round(now, 3)

    def feed(self, event: Mapping[str, Any], now: float) -> Optional[Dict[str, Any]]:
        """Records a progress event of the first host. At the first step after a restart, returns what the restart has cost."""
        with self._lock:
            if not self._all:
                return None
            start, at = self._all[-1], round(now, 3)
            is_first = start.first_step is None
            if is_first:
                start.feed(event, now)
            if event.get("event") != "step":
                return None
            start.step, start.step_at = event["step"], at
            if is_first:
                start.first_step, start.first_step_at = start.step, at
            restarted = self._restarted() if is_first else None
        if is_first:
            self.on_first_step()
        return restarted

    def _restarted(self) -> Optional[Dict[str, Any]]:
        start = self._all[-1]
        if start.number == 0:
            return None
        resumed = start.resumed_step()
        # Without a start before it, a driver has ended that knew the last step.
        lost = None if resumed is None or len(self._all) < 2 else max(0, (self._all[-2].step or 0) - resumed)
        return {"round": start.number, "source": start.source, "lostSteps": lost, "phases": start.phases}

    def facts(self) -> List[Dict[str, Any]]:
        """The `starts` field of the heartbeat, oldest first."""
        with self._lock:
            return [start.facts() for start in self._all[-MAX_IN_HEARTBEAT:]]
