"""The drivers of a job agree on how a round of the launch ended: the first host collects reports and decides for all."""

from __future__ import annotations

import queue
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from slipway_driver.peer_channel import PeerChannel, PeerLost, accept, connect_patiently
from slipway_driver.restart_budget import RestartBudget
from slipway_driver.restart_policy import Decision, Report, decide, report_from

# Other hosts must end their ranks and report within this time; then they count as lost.
REPORT_SECONDS = 60.0
# A driver connects within a second of its start. One that has not when a round ends gets this long; then it counts as gone.
LATE_SECONDS = 15.0


def patience(environ: Mapping[str, str]) -> float:
    """Seconds in which another host must answer: SLIPWAY_PEER_SECONDS, else 60."""
    return float(environ.get("SLIPWAY_PEER_SECONDS") or REPORT_SECONDS)


class Coordinator:
    """On the first host: holds a channel to every other driver."""

    def __init__(
        self, host: str, others: Sequence[str], bind_to: str, port: int, secret: str, restarts: int,
        log: Callable[[str], None], resume_from: Callable[[], str], report_seconds: float = REPORT_SECONDS,
    ) -> None:  # fmt: skip
        self._host, self._others, self._secret = host, list(others), secret
        self._budget, self._log, self._resume_from, self._patience = RestartBudget(restarts), log, resume_from, report_seconds
        self._channels: Dict[str, PeerChannel] = {}
        self._inbox: "queue.Queue[tuple[str, Optional[Dict[str, Any]]]]" = queue.Queue()
        self._early: List[Report] = []
        self._lost: List[str] = []
        self._done: List[str] = []
        self._ends: List[Optional[int]] = []
        self._lock = threading.Lock()
        self._socket = socket.create_server((bind_to, port), backlog=len(self._others) + 1)
        threading.Thread(target=self._accept, name="peers", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _address = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            channel = accept(connection, self._secret)
        except PeerLost as error:
            self._log("a connection was refused: %s" % error)
            return
        with self._lock:
            self._channels[channel.name] = channel
            if len(self._channels) == len(self._others):
                self._log("the drivers of all %d hosts are connected" % (len(self._others) + 1))
        while True:
            try:
                self._inbox.put((channel.name, channel.receive()))
            except (PeerLost, ValueError):
                self._inbox.put((channel.name, None))
                return

    def _take(self, timeout: float) -> bool:
        """One message from the inbox into the books; False when none came."""
        try:
            host, message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return False
        if message is None:
            if host not in self._done:
                self._lost.append(host)
        elif message.get("type") == "ended" and message.get("kind") == "done":
            self._done.append(host)
        elif message.get("type") == "ended":
            self._early.append(report_from(message))
        return True

    def end_asked(self) -> Optional[str]:
        """Why the ranks of this host must end now; None while all goes well.

        A lost connection alone is no reason: the ranks notice themselves when a host is gone, and a healthy job must not end for it.
        """
        while self._take(0.0001):
            pass
        return self._early[0].kind if self._early else None

    def announce(self, kind: str) -> None:
        """Tells the other hosts to end their ranks, before this one does: what they show of a hang is lost when a launcher takes them."""
        self._tell({"type": "end", "kind": kind})

    def finish(self, own: Report) -> None:
        """This host is done. The others will be too, or fail and leave."""

    def settle(self, own: Report) -> "tuple[Decision, str]":
        """Ends the round everywhere, waits for every host's report and tells all the decision; also where to resume from."""
        self._await_connections()
        self._tell({"type": "end", "kind": own.kind})
        deadline = time.monotonic() + self._patience
        while len(self._early) + len(self._done) < len(self._others) and not self._gone() and time.monotonic() < deadline:
            self._take(0.1)
        reports = list(self._early)
        reports.insert(0 if own.kind != "peer-lost" else len(reports), own)
        answered = {report.host for report in reports}
        missing = [host for host in self._others if host not in answered or host in self._gone()]
        decision = decide(reports, missing, self._budget.left(), self._ends)
        resume_from = self._resume_from() if decision.restart else ""
        self._tell({"type": "decision", "restart": decision.restart, "why": decision.why, "resumeFrom": resume_from,
                    "cause": decision.cause.as_message()})  # fmt: skip
        if decision.restart:
            self._budget.take()
            self._ends.append(max((report.step for report in reports if report.step is not None), default=None))
        self._early = []
        return decision, resume_from

    def _gone(self) -> List[str]:
        """Hosts whose connection is lost, or was never made."""
        return [host for host in self._others if host in self._lost or host not in self._channels]

    def _await_connections(self) -> None:
        """A round may end before the slowest driver has connected; nobody hears from one that was killed before it could."""
        deadline = time.monotonic() + min(LATE_SECONDS, self._patience)
        while len(self._channels) < len(self._others) and not self._lost and time.monotonic() < deadline:
            self._take(0.1)

    def _tell(self, message: Mapping[str, Any]) -> None:
        for name, channel in list(self._channels.items()):
            try:
                channel.send(dict(message))
            except PeerLost:
                if name not in self._lost:
                    self._lost.append(name)

    def close(self) -> None:
        self._socket.close()
        for channel in self._channels.values():
            channel.close()


class Member:
    """On every other host: one channel to the first."""

    def __init__(
        self, host: str, address: str, port: int, bind_to: Optional[str], secret: str, log: Callable[[str], None],
        report_seconds: float = REPORT_SECONDS,
    ) -> None:  # fmt: skip
        self._host, self._log, self._patience = host, log, report_seconds
        self._channel: Optional[PeerChannel] = None
        self._inbox: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        self._end: Optional[str] = None
        self._connected = threading.Event()
        arguments = (address, port, bind_to, secret)
        threading.Thread(target=self._listen, args=arguments, name="peers", daemon=True).start()

    def _listen(self, address: str, port: int, bind_to: Optional[str], secret: str) -> None:
        try:
            self._channel = connect_patiently(address, port, self._host, secret, bind_to)
        except PeerLost as error:
            self._log("the first host's driver: %s; there will be no restart in place" % error)
            return
        self._connected.set()
        while True:
            try:
                self._inbox.put(self._channel.receive())
            except (PeerLost, ValueError):
                self._inbox.put(None)
                return

    def end_asked(self) -> Optional[str]:
        """Why the ranks of this host must end now."""
        try:
            message = self._inbox.get_nowait()
        except queue.Empty:
            return self._end
        if message is None:
            self._inbox.put(None)
        elif message.get("type") == "end":
            self._end = str(message.get("kind"))
        else:
            self._inbox.put(message)
        return self._end

    def announce(self, kind: str) -> None:
        """Only the first host tells others."""

    def finish(self, own: Report) -> None:
        """Tells the first host that this one is done, so that its silence is no loss."""
        if self._channel is not None:
            try:
                self._channel.send(own.as_message())
            except PeerLost:
                self._log("the first host's driver is gone")

    def settle(self, own: Report) -> "tuple[Decision, str]":
        """Reports and waits for the first host's decision."""
        self._end = None
        lost = Decision(False, own, "the first host's driver is gone")
        # The round may have ended before this driver could connect.
        if not self._connected.wait(min(LATE_SECONDS, self._patience)) or self._channel is None:
            return lost, ""
        try:
            self._channel.send(own.as_message())
            while True:
                message = self._inbox.get(timeout=2 * self._patience + LATE_SECONDS)
                if message is None:
                    return lost, ""
                if message.get("type") == "decision":
                    cause = report_from(message["cause"])
                    return Decision(bool(message["restart"]), cause, str(message["why"])), str(message["resumeFrom"])
        except (PeerLost, queue.Empty):
            return lost, ""

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()


class Alone:
    """A job of one host, or one that does not restart in place: nobody to ask."""

    def __init__(self, restarts: int, resume_from: Callable[[], str]) -> None:
        self._budget, self._resume_from = RestartBudget(restarts), resume_from
        self._ends: List[Optional[int]] = []

    def end_asked(self) -> Optional[str]:
        return None

    def announce(self, kind: str) -> None:
        """Nobody listens."""

    def finish(self, own: Report) -> None:
        """Nobody waits."""

    def settle(self, own: Report) -> "tuple[Decision, str]":
        decision = decide([own], [], self._budget.left(), self._ends)
        if decision.restart:
            self._budget.take()
            self._ends.append(own.step)
        return decision, self._resume_from() if decision.restart else ""

    def close(self) -> None:
        """Nothing is open."""


Peers = Union[Alone, Coordinator, Member]
