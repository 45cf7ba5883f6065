"""Forwards progress lines of other hosts to the first host, which monitors the whole job. The script decides which rank prints them.

Megatron-LM prints its steps on the last rank (print_rank_last of megatron/training/utils.py, 2026-11-23), which runs on the last host.
"""

from __future__ import annotations

import collections
import threading
from typing import Any, List, Mapping, Optional, Tuple

from slipway_driver.coordinator import Coordinator
from slipway_driver.member import Peers
from slipway_driver.rank_output import LineBudget

#: Limit on forwarded steps, in case every rank of a script prints every step, and on other forwarded lines.
MAX_PER_SECOND = 20
#: What the first host uses of an event. A whole event may be longer than a message between drivers.
FIELDS = ("event", "step", "loss", "name", "state", "end", "budgetSeconds", "source", "reason", "host", "hosts", "what", "ratio")
MAX_CHARACTERS = 300
#: Length of the part of a line that contains the rank label.
LABEL_CHARACTERS = 40


class ProgressSource:
    """Selects the host whose progress counts on the first host: that of rank 0, or, while it prints no steps, the first other host that
    does. Lines of other hosts arrive late, so mixing them would let the step decrease."""

    def __init__(self, of_rank_0: str) -> None:
        self._of_rank_0 = of_rank_0
        self._host: Optional[str] = None
        self._lock = threading.Lock()

    @property
    def is_own(self) -> bool:
        """Whether the steps are those that the host of rank 0 prints."""
        return self._host == self._of_rank_0

    def counts(self, event: Mapping[str, Any], host: str) -> bool:
        """Whether an event that `host` has printed counts."""
        is_step, is_own = event["event"] == "step", host == self._of_rank_0
        with self._lock:
            if is_step and (self._host is None or is_own):
                self._host = host
            return is_own or (is_step and host == self._host)


class SharedProgress:
    """Sends or receives progress lines on one host."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        #: Limits for steps and for other lines.
        self._budgets = [LineBudget(MAX_PER_SECOND, MAX_PER_SECOND) for _ in range(2)]
        #: Lines that could not be sent because there was no connection to the first host.
        self._unsent: "collections.deque[Mapping[str, Any]]" = collections.deque(maxlen=MAX_PER_SECOND)
        self._lock = threading.Lock()

    def add(self, line: str, event: Mapping[str, Any], now: float, of_rank_0: bool = False) -> None:
        """Sends a line of this host, printed at `now` (monotonic seconds), to the first host; drops lines above the limit per second.
        Of a host without rank 0, only steps and losses count there."""
        counts = of_rank_0 or event["event"] in ("step", "metric")
        if counts and self._budgets[event["event"] == "step"].admit("", now):
            short = {name: event[name] for name in FIELDS if name in event}
            short.update({name: value[:MAX_CHARACTERS] for name, value in short.items() if isinstance(value, (str, list))})
            with self._lock:
                self._unsent.append({"line": line[:LABEL_CHARACTERS], "event": short})
            self.send()

    def send(self) -> None:
        """Sends lines that could not be sent before."""
        with self._lock:
            while self._unsent and self._peers.share("progress", self._unsent[0]):
                self._unsent.popleft()

    def heard(self) -> List[Tuple[str, Mapping[str, Any], str]]:
        """On the first host: the lines received from the other hosts since the last call: their beginning, the event, and the host."""
        assert isinstance(self._peers, Coordinator)
        self._peers.end_requested()
        return [(str(one["line"]), one["event"], host) for host, one in self._peers.taken("progress")]
