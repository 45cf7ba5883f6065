"""Progress lines of other hosts, for the first one, which watches over all: which rank prints them is up to the script.

Megatron-LM prints its steps on the last rank (print_rank_last of megatron/training/utils.py, 2026-11-23), which is on the last host.
"""

from __future__ import annotations

import collections
import threading
from typing import Any, List, Mapping, NamedTuple, Optional

from slipway_driver.peers import Peers

#: A script whose every rank prints every step must not fill the first host's books.
MOST_A_SECOND = 20
#: Enough of a line for the label of its rank.
LABEL_CHARACTERS = 40


class Told(NamedTuple):
    """A progress line of another host: its beginning, what was read in it, and the host."""

    line: str
    event: Mapping[str, Any]
    host: str


class ProgressSource:
    """Whose progress counts for the first host: its own, and the steps of the first other host that tells some while it prints none.

    Lines of others come late: beside its own they would take a step back.
    """

    def __init__(self) -> None:
        self._host: Optional[str] = None
        self._lock = threading.Lock()

    def counts(self, event: Mapping[str, Any], host: str) -> bool:
        """Whether an event counts. `host`: where it was printed, empty on this one."""
        is_step = event["event"] == "step"
        with self._lock:
            if is_step and (self._host is None or not host):
                self._host = host
            return not host or (is_step and host == self._host)


class SharedProgress:
    """One host's side of it."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._second, self._told = 0, 0
        #: Lines that came before this host could reach the first one.
        self._unsent: "collections.deque[Mapping[str, Any]]" = collections.deque(maxlen=MOST_A_SECOND)
        self._lock = threading.Lock()

    def tell(self, line: str, event: Mapping[str, Any], now: float) -> None:
        """Tells the first host of a line of this one, printed at `now` (monotonic seconds); too many of one second are lost."""
        if int(now) != self._second:
            self._second, self._told = int(now), 0
        self._told += 1
        if self._told <= MOST_A_SECOND:
            with self._lock:
                self._unsent.append({"line": line[:LABEL_CHARACTERS], "event": dict(event)})
            self.send()

    def send(self) -> None:
        """Tells the first host what it could not be told before."""
        with self._lock:
            while self._unsent and self._peers.share_progress(self._unsent[0]):
                self._unsent.popleft()

    def heard(self) -> List[Told]:
        """On the first host: what the others have told since it was asked last."""
        self._peers.end_asked()
        return [Told(str(one["line"]), one["event"], str(one["host"])) for one in self._peers.progress()]
