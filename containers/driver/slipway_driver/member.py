"""The driver of every host except the first: reports to the first host and follows its decisions."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Any, Dict, Optional, Sequence, Tuple, Union

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

CUT_OFF = "the connection to the first host's driver was lost"


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
        self._inbox: "queue.Queue[Tuple[str, Any]]" = queue.Queue()
        self._end: Optional[str] = None
        #: Whether the first host's driver has ended.
        self.another_ended = False
        self._connected = threading.Event()
        self._stopping, self._closed = False, False
        arguments = (address, port, bind_to, secret, is_again)
        threading.Thread(target=self._listen, args=arguments, name="peers", daemon=True).start()

    def _listen(self, address: str, port: int, bind_to: Optional[str], secret: str, is_again: bool) -> None:
        """Receives until the connection is lost for good. A driver of the first host that a signal has ended is started again."""
        seconds = min(RETURN_SECONDS, self._patience) if is_again else CONNECT_SECONDS
        while True:
            try:
                self._channel = channel = connect_patiently(address, port, self._host, secret, bind_to, seconds)
            except PeerLost as error:
                if self._channel is None:
                    log("the first host's driver: %s; there will be no restart in place" % error)
                break
            self._introduce(channel, is_again)
            self.another_ended, is_again, seconds = False, False, min(RETURN_SECONDS, self._patience)
            self._inbox.put(("back", None))
            self._connected.set()
            try:
                while True:
                    self._inbox.put(channel.receive())
            except (PeerLost, ValueError) as error:
                if self._closed:
                    break
                self.another_ended = isinstance(error, PeerEnded)
                if not isinstance(error, PeerEnded) or error.for_good:
                    break
        self._inbox.put(("lost", None))

    def _introduce(self, channel: PeerChannel, is_again: bool) -> None:
        with contextlib.suppress(PeerLost):
            if is_again:
                channel.send("again")
            for kind, content in self._introduction.items():
                if content:
                    channel.send(kind, content)

    def _next(self, seconds: float = 0.0) -> Tuple[str, Any]:
        """The kind and content of the next message; "" if there is none within `seconds`."""
        with contextlib.suppress(queue.Empty):
            return self._inbox.get(timeout=seconds)
        return "", None

    def end_requested(self) -> Optional[str]:
        """Returns the failure class because of which this host must end its ranks; None if there is no request."""
        kind, content = self._next()
        if kind == "end":
            self._end = str(content)
        elif kind not in ("", "back"):
            self._inbox.put((kind, content))
        return self._end

    def share(self, kind: str, content: Any) -> bool:
        """Sends a report of this host to the first host; False if there is no connection yet, with which what introduces this host is
        sent."""
        if kind in self._introduction:
            self._introduction[kind] = content
        return bool(content) and self._send(kind, content)

    def stop(self) -> None:
        """Called on SIGTERM: the job is ending, so no decision is waited for."""
        self._stopping = True
        self._connected.set()
        self._inbox.put(("lost", None))

    def finish(self, own: Report) -> None:
        """Tells the first host that this host has finished, so that its disconnect does not count as a loss."""
        self._send("ended", own)

    def _send(self, kind: str, content: Any) -> bool:
        if self._channel is None:
            return False
        try:
            self._channel.send(kind, content)
        except PeerLost:
            log(CUT_OFF)
        return True

    def settle(self, own: Report) -> "tuple[Decision, str]":
        """Sends the report and waits for the decision of the first host."""
        self._end = None
        # The ranks may have ended before this driver could connect.
        if self._connected.wait(min(LATE_SECONDS, self._patience)) and self._channel is not None:
            self._introduction["efa"] = None  # A start that follows has networks of its own.
            kind, reported_to = "back", None
            while kind not in ("", "lost"):
                if kind == "back" and self._channel is not reported_to:
                    reported_to = self._channel
                    with contextlib.suppress(PeerLost):  # The thread that reads from the channel reports the loss.
                        reported_to.send("ended", own)
                kind, content = self._next(2 * self._patience + LATE_SECONDS)
                if kind == "decision":
                    return decided(content)
        return Decision(False, own, STOPPED if self._stopping else CUT_OFF), ""

    def heard(self) -> "tuple[Decision, str] | Failure | None":
        """For an idle host: the next decision, its outcome at the end of the wait, or None if there is no message."""
        kind, content = self._next()
        if kind == "lost":
            return Failure(TRY_AGAIN, "peer-lost", None, CUT_OFF, [])
        if kind == "decision":
            return decided(content)
        return Failure(DONE, class_of(DONE), None, "", []) if kind == "release" else None

    def announce(self, kind: str) -> None:
        """Does nothing: only the first host detects hangs."""

    def close(self) -> None:
        """Closes the channel to the first host, if there is one. The first host would wait again for a driver that connects again."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()


Peers = Union[Coordinator, Member]
