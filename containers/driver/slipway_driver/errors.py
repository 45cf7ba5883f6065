"""Which error of many is the one to show: the first real one, not the noise of the ranks that lost their peer."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from slipway_driver.exit_codes import CLASSES, HANG, OUT_OF_MEMORY, TRY_AGAIN, class_of

TAIL_LINES = 40
SIGKILL, SIGTERM = 9, 15

#: What a rank says when somebody else died or left. Never the cause.
PEER_LOST = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|ncclRemoteError"
    r"|remote process exited or there was a network error|NCCL communicator (was|is) aborted"
    r"|DistNetworkError|DistStoreError|failed to recv, got 0 bytes|recvValue failed"
    r"|Connection refused|ProcessGroup.* was destroyed|Failed to send to peer"
)
#: A collective that never came back.
COLLECTIVE_TIMEOUT = re.compile(r"caught collective operation timeout|Timed out waiting \d+ms|watchdog got stuck|Watchdog caught .*timeout")
_EXCEPTION_LINE = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Warning|Exit|Timeout)|[A-Za-z_][\w.]*\.[A-Z]\w+)(?::|$)")
_TRACEBACK = "Traceback (most recent call last):"
# Lines that mean an error although no traceback follows.
_BARE_ERROR = re.compile(r"\b(error|fatal|abort(?:ed)?|segmentation fault|terminate called)\b", re.IGNORECASE)


class ErrorCollector:
    """Reads one rank's stderr line by line and keeps the first error in it."""

    def __init__(self) -> None:
        self.summary = ""
        self.at: Optional[float] = None
        self._traceback: List[str] = []
        self._inside = False
        self._tail: List[str] = []

    def feed(self, line: str, at: float) -> None:
        self._tail = (self._tail + [line])[-TAIL_LINES:]
        if line.strip() == _TRACEBACK:
            # A later traceback replaces the earlier only while none has named its exception as final.
            self._inside = True
            if self.at is None:
                self.at = at
            self._traceback.append(line)
        elif self._inside:
            self._traceback = (self._traceback + [line])[-4 * TAIL_LINES :]
            if line and not line[0].isspace():
                self._inside = False
                if _EXCEPTION_LINE.match(line):
                    self.summary = line
        elif not self.summary and self.at is None and _BARE_ERROR.search(line):
            self.at = at
            self.summary = line

    @property
    def tail(self) -> List[str]:
        """The traceback if there was one, else the last lines."""
        return (self._traceback or self._tail)[-TAIL_LINES:]


class Failure(NamedTuple):
    """How one host's attempt ended. `lines`: the first real error's last lines."""

    code: int
    kind: str
    rank: Optional[int]
    reason: str
    lines: Sequence[str]


def is_peer_lost(record: Mapping[str, Any]) -> bool:
    """Whether a rank only suffered from another's end."""
    text = "\n".join([record.get("summary", "")] + list(record.get("tail", []))[-6:])
    if record.get("tornDown") and not record.get("summary"):
        return True  # The launcher ended this rank, because another one had failed.
    return bool(PEER_LOST.search(text)) and not COLLECTIVE_TIMEOUT.search(text)


def _signal(record: Mapping[str, Any]) -> Optional[int]:
    return -record["code"] if record["code"] < 0 else None


def _weight(record: Mapping[str, Any]) -> int:
    """Lower = more likely the cause."""
    text = record.get("summary", "")
    if record["code"] in CLASSES and record["code"] != 0:
        return 0
    if is_peer_lost(record):
        return 3
    if record.get("stopped") or (_signal(record) == SIGTERM and not text):
        return 4
    if COLLECTIVE_TIMEOUT.search(text + "\n".join(record.get("tail", []))):
        return 2
    return 1


def first_real(records: Sequence[Mapping[str, Any]]) -> Optional[Dict[str, Any]]:
    """The record of the rank that failed first for a reason of its own; None when none failed."""
    failed = [dict(record) for record in records if record["code"] != 0]
    if not failed:
        return None
    return min(failed, key=lambda record: (_weight(record), record.get("errorAt") or record["endedAt"]))


def classify(record: Mapping[str, Any], out_of_memory: bool) -> Failure:
    """The container's exit code and failure class from the rank that failed first."""
    code, summary, tail = record["code"], record.get("summary", ""), list(record.get("tail", []))
    rank = record.get("rank")
    text = summary + "\n" + "\n".join(tail)
    signal_number = _signal(record)
    if code in CLASSES:
        return Failure(code, class_of(code), rank, summary or "exit code %d" % code, tail)
    if signal_number == SIGKILL and out_of_memory:
        reason = "the kernel killed rank %s: out of host memory" % rank
        return Failure(OUT_OF_MEMORY, "host-memory", rank, reason, tail)
    if COLLECTIVE_TIMEOUT.search(text):
        return Failure(HANG, class_of(HANG), rank, summary or "a collective timed out", tail)
    if is_peer_lost(record):
        return Failure(TRY_AGAIN, "peer-lost", rank, summary or "the connection to another rank was lost", tail)
    if signal_number is not None:
        return Failure(128 + signal_number, "user-code", rank, summary or "killed by signal %d" % signal_number, tail)
    return Failure(code, class_of(code), rank, summary or "exit code %d" % code, tail)
