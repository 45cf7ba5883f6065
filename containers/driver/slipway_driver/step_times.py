"""Step times of every start of an attempt's ranks, by this host's clock. The run's time accounting is computed from them."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional

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

    def facts(self) -> Dict[str, Any]:
        """The fields of the heartbeat: times in epoch seconds, None for events that have not happened."""
        return {
            "number": self.number,
            "firstStep": self.first_step,
            "firstStepAt": self.first_step_at,
            "step": self.step,
            "stepAt": self.step_at,
            "endedAt": self.ended_at,
        }


class StepTimes:
    """Step times over all starts of an attempt, including restarts in place."""

    def __init__(self) -> None:
        self._all: List[StartTimes] = []
        self._lock = threading.Lock()
        #: Called at the first step of each start, to write the heartbeat without waiting for its interval.
        self.on_first_step: Callable[[], None] = lambda: None

    def begin(self, number: int) -> None:
        """Records the beginning of a start of the ranks; the first has number 0."""
        with self._lock:
            self._all.append(StartTimes(number))

    def end(self, now: float) -> None:
        """Records that the ranks of the newest start have ended."""
        with self._lock:
            if self._all and self._all[-1].ended_at is None:
                self._all[-1].ended_at = round(now, 3)

    def feed(self, event: Mapping[str, Any], now: float) -> None:
        """Records a progress event of the first host; all events except steps are ignored."""
        if event.get("event") != "step":
            return
        with self._lock:
            if not self._all:
                return
            start, at = self._all[-1], round(now, 3)
            is_first = start.first_step is None
            start.step, start.step_at = event["step"], at
            if is_first:
                start.first_step, start.first_step_at = start.step, at
        if is_first:
            self.on_first_step()

    def facts(self) -> List[Dict[str, Any]]:
        """The `starts` field of the heartbeat, oldest first."""
        with self._lock:
            return [start.facts() for start in self._all[-MAX_IN_HEARTBEAT:]]
