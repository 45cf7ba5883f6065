"""Which error of many is the one to show: the first real one, not the noise of the ranks that lost their peer."""

from __future__ import annotations

import signal
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from slipway_driver import error_lines as says
from slipway_driver.error_collector import is_noise
from slipway_driver.exit_codes import CLASSES, HANG, OUT_OF_MEMORY, TRY_AGAIN, class_of

#: How a shell reports that its child was killed.
SHELL_SIGKILL = 128 + signal.SIGKILL


class Failure(NamedTuple):
    """How one host's attempt ended. `lines`: the first real error's last lines. `host`: another host that is the cause, if known."""

    code: int
    kind: str
    rank: Optional[int]
    reason: str
    lines: Sequence[str]
    host: str = ""


def _text(record: Mapping[str, Any], lines: Optional[int] = None) -> str:
    """The line that names a rank's error, and its last lines (all that were kept when `lines` is None)."""
    tail: List[str] = list(record.get("tail", []))
    return "\n".join([record.get("summary", ""), *(tail if lines is None else tail[-lines:])])


def is_peer_lost(record: Mapping[str, Any]) -> bool:
    """Whether a rank only suffered from another's end."""
    if record.get("tornDown") and not record.get("summary"):
        return True  # The launcher ended this rank, because another one had failed.
    whole, end, summary = _text(record), _text(record, 6), record.get("summary", "")
    if says.COLLECTIVE_TIMEOUT.search(whole):
        return False
    if summary and not is_noise(summary) and not says.TALKS_TO_RANKS.search(summary):
        return False  # An error of its own; that its peers went away is what followed.
    if says.SYSTEM_ERROR.search(whole) and says.REMOTE_SILENT.search(whole):
        return True
    return bool(says.PEER_LOST.search(end)) or bool(says.CONNECTION_LOST.search(end) and says.TALKS_TO_RANKS.search(whole))


def _signal(record: Mapping[str, Any]) -> Optional[int]:
    return -record["code"] if record["code"] < 0 else None


def _weight(record: Mapping[str, Any]) -> int:
    """Lower = more likely the cause."""
    if record["code"] in CLASSES and record["code"] != 0:
        return 0
    if is_peer_lost(record):
        return 3
    if record.get("stopped") or (_signal(record) == signal.SIGTERM and not record.get("summary")):
        return 4
    if says.COLLECTIVE_TIMEOUT.search(_text(record)):
        return 2
    return 1


def first_real(records: Sequence[Mapping[str, Any]]) -> Optional[Dict[str, Any]]:
    """The record of the rank that failed first for a reason of its own; None when none failed."""
    failed = [dict(record) for record in records if record["code"] != 0]
    if not failed:
        return None
    return min(failed, key=lambda record: (_weight(record), record.get("errorAt") or record["endedAt"]))


def _killed_for_memory(record: Mapping[str, Any], out_of_memory: bool) -> bool:
    """Whether the kernel's out-of-memory killer ended this rank, or a process that it could not do without."""
    killed = _signal(record) == signal.SIGKILL or record["code"] == SHELL_SIGKILL
    if killed:
        return out_of_memory or bool(says.KERNEL_OUT_OF_MEMORY.search(_text(record)))
    return out_of_memory and bool(says.KILLED_WORKER.search(_text(record)))


def _killed_by(number: int) -> str:
    try:
        return "killed by signal %d (%s)" % (number, signal.Signals(number).name)
    except ValueError:
        return "killed by signal %d" % number


def classify(record: Mapping[str, Any], out_of_memory: bool) -> Failure:
    """The container's exit code and failure class from the rank that failed first. `out_of_memory`: the kernel's counter has grown."""
    code, summary, tail = record["code"], record.get("summary", ""), list(record.get("tail", []))
    rank = record.get("rank")
    signal_number = _signal(record)
    if code in CLASSES:
        return Failure(code, class_of(code), rank, summary or "exit code %d" % code, tail)
    if _killed_for_memory(record, out_of_memory):
        reason = "the kernel killed a process of rank %s: out of host memory" % rank
        return Failure(OUT_OF_MEMORY, "host-memory", rank, reason, tail)
    if says.COLLECTIVE_TIMEOUT.search(_text(record)):
        named = summary if summary and not is_noise(summary) else ""
        said = next((line for line in tail if says.COLLECTIVE_TIMEOUT.search(line)), "a collective timed out")
        return Failure(HANG, class_of(HANG), rank, named or said, tail)
    if is_peer_lost(record):
        return Failure(TRY_AGAIN, "peer-lost", rank, summary or "the connection to another rank was lost", tail)
    if signal_number is not None:
        return Failure(128 + signal_number, "user-code", rank, summary or _killed_by(signal_number), tail)
    return Failure(code, class_of(code), rank, summary or "exit code %d" % code, tail)
