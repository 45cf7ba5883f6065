"""Authenticated messages between the drivers of a job: JSON lines over TCP, each with an HMAC.

Both sides prove that they know job.json's restartSecret before any message is read. The session key depends on nonces of both sides, which
prevents replay attacks. Messages are not encrypted: they contain no secrets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import IO, Any, Callable, Mapping, Optional, Tuple

from slipway_driver.log import log

LONGEST_LINE = 1 << 16
HANDSHAKE_SECONDS = 10.0
# The hosts of a job do not start at the same time.
CONNECT_SECONDS = 900.0
# Other hosts must end their ranks and report within this time; otherwise they count as lost.
REPORT_SECONDS = 90.0
# A driver normally connects within a second of its start. If the ranks end before that, it has this long to connect; otherwise it counts as
# lost.
LATE_SECONDS = 15.0
# A driver that a signal has ended is started again on its host. Its imports and nvidia-smi take most of this time on eight GPUs.
RETURN_SECONDS = 60.0
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.05, 2.0


def patience(environ: Mapping[str, str]) -> float:
    """Seconds within which another host must respond: SLIPWAY_PEER_SECONDS, otherwise REPORT_SECONDS."""
    return float(environ.get("SLIPWAY_PEER_SECONDS") or REPORT_SECONDS)


class PeerLost(Exception):
    """The connection was lost, or the other side could not be authenticated."""


class PeerEnded(PeerLost):
    """The connection was closed: the other driver has ended, or its host's kernel has ended it. `for_good`: it has said so before."""

    def __init__(self, reason: str, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


def _code(key: bytes, *parts: str) -> str:
    return hmac.new(key, "|".join(parts).encode("utf-8"), hashlib.sha256).hexdigest()


def _read_line(lines: "IO[bytes]") -> str:
    line = lines.readline(LONGEST_LINE + 1)
    if not line.endswith(b"\n"):
        raise PeerLost("a line is too long") if len(line) > LONGEST_LINE else PeerEnded("the connection was closed")
    return line[:-1].decode("utf-8", "replace")


class PeerChannel:
    """One authenticated connection. `send` may be called from any thread, and `receive` from one other."""

    def __init__(self, connection: socket.socket, lines: "IO[bytes]", key: bytes, side: str, name: str) -> None:
        self._connection, self._lines, self._key, self._side = connection, lines, key, side
        self.name = name
        self._sent = self._received = 0
        self._sending = threading.Lock()

    def send(self, kind: str, content: Any = None) -> None:
        """Sends a message with its HMAC. Raises PeerLost if the connection is lost."""
        text = json.dumps([kind, content], separators=(",", ":"))
        with self._sending:
            code = _code(self._key, self._side, str(self._sent), text)
            self._sent += 1
            try:
                self._connection.sendall((code + " " + text + "\n").encode("utf-8"))
            except OSError as error:
                raise PeerLost(str(error))

    def receive(self) -> Tuple[str, Any]:
        """Waits for the kind and content of the next message. Raises PeerEnded if the other driver has ended, PeerLost for a lost
        connection or a wrong HMAC."""
        try:
            line = _read_line(self._lines)
        except ConnectionResetError as error:
            raise PeerEnded(str(error))
        except OSError as error:
            raise PeerLost(str(error))
        code, _, text = line.partition(" ")
        other = "client" if self._side == "server" else "server"
        if not hmac.compare_digest(code, _code(self._key, other, str(self._received), text)):
            raise PeerLost("a message was not signed with the job's secret")
        self._received += 1
        kind, content = json.loads(text)
        if kind == "leave":
            raise PeerEnded("the other driver has ended", for_good=True)
        return kind, content

    def close(self) -> None:
        """Ends the connection for good; the other side's `receive` then raises PeerEnded."""
        with suppress(PeerLost):
            self.send("leave")
        self.cut()

    def cut(self) -> None:
        """Closes the connection."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def _notice_a_dead_host(connection: socket.socket) -> None:
    """Detects a host that has lost power: the kernel probes after 10 s of silence and closes the connection after 15 s more."""
    for option, value in (("SO_KEEPALIVE", 1), ("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # Not every platform has all options.
            level = socket.SOL_SOCKET if option.startswith("SO_") else socket.IPPROTO_TCP
            connection.setsockopt(level, getattr(socket, option), value)


def _session_key(secret: str, server_nonce: str, client_nonce: str) -> bytes:
    return hmac.new(secret.encode("utf-8"), (server_nonce + client_nonce).encode("ascii", "replace"), hashlib.sha256).digest()


def accept(connection: socket.socket, secret: str) -> PeerChannel:
    """The server's side of the handshake. Raises PeerLost for a client that does not know the secret."""
    connection.settimeout(HANDSHAKE_SECONDS)
    _notice_a_dead_host(connection)
    lines = connection.makefile("rb")
    nonce = secrets.token_hex(16)
    try:
        connection.sendall((nonce + "\n").encode())
        name, client_nonce, proof = (_read_line(lines).split(" ") + ["", "", ""])[:3]
        key = _session_key(secret, nonce, client_nonce)
        if not hmac.compare_digest(proof, _code(key, "hello", name)):
            raise PeerLost("a client did not know the job's secret")
        connection.sendall((_code(key, "welcome", name) + "\n").encode())
        connection.settimeout(None)
    except (OSError, PeerLost) as error:
        connection.close()
        raise PeerLost(str(error))
    return PeerChannel(connection, lines, key, "server", name)


def serve(listening: socket.socket, secret: str, use: Callable[[PeerChannel], None]) -> None:
    """Accepts clients that know the secret, until the socket is closed. `use` gets the channel of each in a thread of its own."""

    def shake_hands(connection: socket.socket) -> None:
        try:
            channel = accept(connection, secret)
        except PeerLost as error:
            log("rejected a connection: %s" % error)
            return
        use(channel)

    def accept_all() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=shake_hands, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept_all, name="peers", daemon=True).start()


def connect(address: str, port: int, name: str, secret: str, bind_to: Optional[str] = None) -> PeerChannel:
    """The client's side of the handshake. Raises PeerLost for a server that does not know the secret, OSError if no server listens."""
    source = (bind_to, 0) if bind_to else None
    connection = socket.create_connection((address, port), timeout=HANDSHAKE_SECONDS, source_address=source)
    _notice_a_dead_host(connection)
    lines = connection.makefile("rb")
    client_nonce = secrets.token_hex(16)
    try:
        key = _session_key(secret, _read_line(lines), client_nonce)
        connection.sendall(("%s %s %s\n" % (name, client_nonce, _code(key, "hello", name))).encode("utf-8"))
        if not hmac.compare_digest(_read_line(lines), _code(key, "welcome", name)):
            raise PeerLost("the server does not know the job's secret")
    except (OSError, PeerLost):
        connection.close()
        raise
    connection.settimeout(None)
    return PeerChannel(connection, lines, key, "client", name)


def connect_patiently(
    address: str, port: int, name: str, secret: str, bind_to: Optional[str] = None, seconds: float = CONNECT_SECONDS
) -> PeerChannel:
    """Retries `connect`, because the other driver may start later. Raises PeerLost if it does not respond within `seconds`."""
    deadline, delay = time.monotonic() + seconds, FIRST_DELAY_SECONDS
    while True:
        try:
            return connect(address, port, name, secret, bind_to)
        except (OSError, PeerLost) as error:
            if time.monotonic() + delay > deadline:
                raise PeerLost("no connection to %s within %d s (%s)" % (address, seconds, error))
        time.sleep(delay)
        delay = min(2 * delay, LONGEST_DELAY_SECONDS)
