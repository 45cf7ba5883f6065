"""The driver of every host except the first: reports to the first host and follows its decisions."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Any, Dict, Optional, Sequence, Union

from slipway_driver.coordinator import Coordinator
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import DONE, TRY_AGAIN, class_of
from slipway_driver.log import log
from slipway_driver.peer_channel import (
    CONNECT_SECONDS,
    LATE_SECONDS,
    REPORT_SECONDS,
    RETURN_SECONDS,
    PeerChannel,
    PeerEnded,
    PeerLost,
    connect_patiently,
)
from slipway_driver.restart_policy import STOPPED, Decision, Report, decided


class Member:
    """Runs on every host except the first, with one channel to the first host."""

    def __init__(
        self, host: str, address: str, port: int, bind_to: Optional[str], secret: str,
        report_seconds: float = REPORT_SECONDS, is_again: bool = False, gpus: Sequence[Sequence[Any]] = (),
    ) -> None:  # fmt: skip
        """`is_again`: a signal has ended the driver of this host before; `gpus`: the GPUs of this host."""
        #: What is sent after every connection, also to a first host whose driver was started again: the GPUs of this host, those that have
        #: passed the full health check, and the EFA report.
        self._introduction: Dict[str, Any] = {"identity": list(gpus), "cleared": [], "efa": None}
        self._host, self._patience = host, report_seconds
        self._channel: Optional[PeerChannel] = None
        self._inbox: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        self._end: Optional[str] = None
        #: Whether the first host's driver has ended.
        self.another_ended = False
        self._connected = threading.Event()
        self._stopping, self._closed = False, False
        arguments = (address, port, bind_to, secret, is_again)
        threading.Thread(target=self._listen, args=arguments, name="peers", daemon=True).start()

    def _listen(self, address: str, port: int, bind_to: Optional[str], secret: str, is_again: bool) -> None:
        returns = min(RETURN_SECONDS, self._patience)
        try:
            self._channel = connect_patiently(address, port, self._host, secret, bind_to, returns if is_again else CONNECT_SECONDS)
            self._introduce(is_again)
        except PeerLost as error:
            log("the first host's driver: %s; there will be no restart in place" % error)
            self._inbox.put(None)
            return
        self._connected.set()
        while True:
            try:
                self._inbox.put(self._channel.receive())
            except (PeerLost, ValueError) as error:
                if self._closed:
                    break
                self.another_ended = isinstance(error, PeerEnded)
                if not isinstance(error, PeerEnded) or error.for_good:
                    break
                try:
                    self._channel = connect_patiently(address, port, self._host, secret, bind_to, returns)
                except PeerLost:
                    break
                self._introduce(False)
                self.another_ended = False
                self._inbox.put({"type": "back"})
        self._inbox.put(None)

    def _introduce(self, is_again: bool) -> None:
        with contextlib.suppress(PeerLost):
            if self._channel and is_again:
                self._channel.send({"type": "again"})
            for kind, content in self._introduction.items():
                if self._channel and content:
                    self._channel.send({"type": kind, "content": content})

    def end_requested(self) -> Optional[str]:
        """Returns the failure class because of which this host must end its ranks; None if there is no request."""
        try:
            message = self._inbox.get_nowait()
        except queue.Empty:
            return self._end
        if message is None:
            self._inbox.put(None)
        elif message.get("type") == "end":
            self._end = str(message.get("kind"))
        elif message.get("type") != "back":
            self._inbox.put(message)
        return self._end

    def share(self, kind: str, content: Any) -> bool:
        """Sends a report of this host to the first host; False if there is no connection yet, with which what introduces this host is
        sent."""
        if kind in self._introduction:
            self._introduction[kind] = content
        return bool(content) and self._send({"type": kind, "content": content})

    def stop(self) -> None:
        """Called on SIGTERM: the job is ending, so no decision is waited for."""
        self._stopping = True
        self._connected.set()
        self._inbox.put(None)

    def finish(self, own: Report) -> None:
        """Tells the first host that this host has finished, so that its disconnect does not count as a loss."""
        self._send(own.as_message())

    def _send(self, message: Dict[str, Any]) -> bool:
        if self._channel is None:
            return False
        try:
            self._channel.send(message)
        except PeerLost:
            log("the connection to the first host's driver was lost")
        return True

    def settle(self, own: Report) -> "tuple[Decision, str]":
        """Sends the report and waits for the decision of the first host."""
        self._end = None
        lost = Decision(False, own, "the connection to the first host's driver was lost")
        stopped = Decision(False, own, STOPPED)
        # The ranks may have ended before this driver could connect.
        if not self._connected.wait(min(LATE_SECONDS, self._patience)) or self._channel is None:
            return (stopped if self._stopping else lost), ""
        self._introduction["efa"] = None  # A start that follows has networks of its own.
        channel = self._report(self._channel, own)
        while True:
            try:
                message = self._inbox.get(timeout=2 * self._patience + LATE_SECONDS)
            except queue.Empty:
                return lost, ""
            if message is None:
                return (stopped if self._stopping else lost), ""
            if message.get("type") == "decision":
                return decided(message)
            if message.get("type") == "back" and self._channel is not channel:
                channel = self._report(self._channel, own)

    def _report(self, channel: PeerChannel, own: Report) -> PeerChannel:
        """Sends the report of this host, and returns its channel."""
        with contextlib.suppress(PeerLost):  # The thread that reads from the channel reports the loss.
            channel.send(own.as_message())
        return channel

    def heard(self) -> "tuple[Decision, str] | Failure | None":
        """For an idle host: the next decision, its outcome at the end of the wait, or None if there is no message."""
        try:
            message = self._inbox.get_nowait()
        except queue.Empty:
            return None
        if message is None:
            return Failure(TRY_AGAIN, "peer-lost", None, "the connection to the first host's driver was lost", [])
        if message.get("type") == "decision":
            return decided(message)
        return Failure(DONE, class_of(DONE), None, "", []) if message.get("type") == "release" else None

    def announce(self, kind: str) -> None:
        """Does nothing: only the first host detects hangs."""

    def close(self) -> None:
        """Closes the channel to the first host, if there is one. The first host would wait again for a driver that connects again."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()


Peers = Union[Coordinator, Member]
