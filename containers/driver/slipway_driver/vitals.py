"""Training status for the heartbeat: loss, current and usual speed, and a slow host or network."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Deque, Dict, Mapping, Optional, Sequence, Tuple

#: Window over which speed is measured, without declared phases, and the number of previous windows for comparison (one hour).
WINDOW_SECONDS = 300.0
WINDOWS = 12
#: The minimum number of windows for an estimate of the usual speed.
MIN_WINDOWS = 4


class Vitals:
    """Computes the status from the progress events of the first host. `hosts`: names of the training hosts in rank order."""

    def __init__(self, hosts: Sequence[str], restarts: int) -> None:
        self._hosts, self._restarts = list(hosts), restarts
        self._first: Optional[int] = None
        self._loss: Optional[float] = None
        self._alert: Optional[str] = None
        self._slow: Optional[Dict[str, Any]] = None
        self._rates: Deque[float] = deque(maxlen=WINDOWS + 1)
        self._window: Optional[Tuple[int, float]] = None
        self._phase_since: Optional[float] = None
        self._quiet_seconds = 0.0

    def feed(self, event: Mapping[str, Any], now: float) -> None:
        """Processes one progress event, read at `now` (seconds of the monotonic clock)."""
        kind, loss = event.get("event"), event.get("loss")
        if kind in ("step", "metric") and loss is not None and math.isfinite(loss):
            self._loss = float(loss)
        if kind == "step":
            self._step(event["step"], now)
        elif kind == "phase" and event.get("state", "begin") != "end":
            self._phase_since = now
        elif kind == "phase" and self._phase_since is not None:
            self._quiet_seconds, self._phase_since = self._quiet_seconds + now - self._phase_since, None
        elif kind == "loss":
            self._alert = str(event.get("reason", ""))[:300]
        elif kind == "slow-host":
            self._slow_host(event)

    def _step(self, step: int, now: float) -> None:
        self._first = step if self._first is None else self._first
        first, since = self._window or (step, now)
        elapsed = now - since - self._quiet_seconds
        if elapsed >= WINDOW_SECONDS:
            self._rates.append(3600.0 * (step - first) / elapsed)
        if elapsed >= WINDOW_SECONDS or self._window is None:
            self._window, self._quiet_seconds = (step, now), 0.0

    def _slow_host(self, event: Mapping[str, Any]) -> None:
        index, between = event.get("host"), event.get("hosts")
        what, ratio = str(event.get("what", ""))[:300], event.get("ratio")
        if self._is_host(index):
            self._slow = {"host": self._hosts[index], "what": what, "ratio": ratio}
        elif isinstance(between, list):
            names = " and ".join(self._hosts[host] for host in between[:2] if self._is_host(host))
            # No host is to blame.
            self._slow = {"host": "", "what": what + (" between " + names if names else ""), "ratio": ratio}
        else:
            self._slow = None

    def _is_host(self, index: Any) -> bool:
        return isinstance(index, int) and 0 <= index < len(self._hosts)

    def facts(self) -> Dict[str, Any]:
        """Fields of the heartbeat; None for unknown values."""
        import statistics

        known = len(self._rates) >= MIN_WINDOWS
        rates = list(self._rates)
        return {
            "firstStep": self._first,
            "loss": self._loss,
            "lossAlert": self._alert,
            "slowHost": self._slow,
            "stepsPerHour": round(rates[-1], 2) if known else None,
            "usualStepsPerHour": round(statistics.median(rates[:-1]), 2) if known else None,
            "restarts": self._restarts,
        }
