"""Selects the error to report: the first real error, not the errors of ranks that lost a peer. Writes it to /opt/ml/output/failure: one
line of JSON, then the last lines of the error, within the 1,024 characters that the service keeps.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-output.html (2026-11-20).
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from slipway_driver import error_lines as patterns
from slipway_driver.error_collector import is_noise
from slipway_driver.exit_codes import CLASSES, HANG, OUT_OF_MEMORY, TRY_AGAIN, class_of
from slipway_driver.log import without_hidden

#: cgroup v2 and v1 (https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.events; v1: memory.oom_control).
_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
#: Exit code of a shell whose child was killed.
SHELL_SIGKILL = 128 + signal.SIGKILL


class Failure(NamedTuple):
    """The outcome of one host. `lines`: the last lines of the first real error. `host`: another host that is the cause, if known."""

    code: int
    kind: str
    rank: Optional[int]
    reason: str
    lines: Sequence[str]
    host: str = ""


def _text(record: Mapping[str, Any], lines: Optional[int] = None) -> str:
    """The line that names a rank's error, and the last `lines` lines of its output (all that were kept if None)."""
    tail: List[str] = list(record.get("tail", []))
    return "\n".join([record.get("summary", ""), *(tail if lines is None else tail[-lines:])])


def is_peer_lost(record: Mapping[str, Any]) -> bool:
    """Whether a rank failed only because another rank exited."""
    if record.get("tornDown") and not record.get("summary"):
        return True  # The launcher ended this rank because another one had failed.
    whole, end, summary = _text(record), _text(record, 6), record.get("summary", "")
    if patterns.COLLECTIVE_TIMEOUT.search(whole):
        return False
    if summary and not is_noise(summary) and not patterns.TALKS_TO_RANKS.search(summary):
        return False  # The rank has an error of its own; the loss of its peers is a consequence.
    if patterns.SYSTEM_ERROR.search(whole) and patterns.REMOTE_SILENT.search(whole):
        return True
    return bool(patterns.PEER_LOST.search(end)) or bool(patterns.CONNECTION_LOST.search(end) and patterns.TALKS_TO_RANKS.search(whole))


def _signal(record: Mapping[str, Any]) -> Optional[int]:
    return -record["code"] if record["code"] < 0 else None


def _weight(record: Mapping[str, Any]) -> int:
    """Sort key of a failed rank; lower values are more likely to be the cause."""
    if record["code"] in CLASSES and record["code"] != 0:
        return 0
    text = _text(record)
    if is_peer_lost(record):
        return 4
    if record.get("stopped") or (_signal(record) == signal.SIGTERM and not record.get("summary")):
        return 5
    if patterns.COLLECTIVE_TIMEOUT.search(text):
        return 3
    names_cause = "out of memory" in text or patterns.HARDWARE.search(text) or not patterns.CAUSELESS.search(record.get("summary", ""))
    return 1 if names_cause else 2


def first_real(records: Sequence[Mapping[str, Any]]) -> Optional[Dict[str, Any]]:
    """The record of the rank that failed first for a reason of its own; None if no rank failed."""
    failed = [dict(record) for record in records if record["code"] != 0]
    if not failed:
        return None
    return min(failed, key=lambda record: (_weight(record), record.get("errorAt") or record["endedAt"]))


def _killed_for_memory(record: Mapping[str, Any], out_of_memory: bool) -> bool:
    """Whether the kernel's out-of-memory killer ended this rank or one of its worker processes."""
    text, summary = _text(record), record.get("summary", "")
    killed = _signal(record) == signal.SIGKILL or record["code"] == SHELL_SIGKILL
    if killed:
        return out_of_memory or bool(patterns.KERNEL_OUT_OF_MEMORY.search(text))
    if patterns.RAY_OUT_OF_MEMORY.search(text):
        return True
    # A launcher reports the end of its program with an exit code of its own, and perhaps behind its own traceback.
    behind = record.get("killed") and (not summary or is_noise(summary))
    return out_of_memory and bool(behind or patterns.KILLED_PROGRAM.search(text))


def after_hang(hang: Failure, records: Sequence[Mapping[str, Any]], before: float) -> Failure:
    """A hang with the last traceback that was printed `before` (monotonic seconds): a program may wait for what that error has ended."""
    found = [record for record in records if record.get("raised") and record["raisedAt"] <= before]
    if hang.code != HANG or not found:
        return hang
    last = max(found, key=lambda record: record["raisedAt"])
    reason = "%s; the last error before: %s" % (hang.reason, last["raised"])
    return hang._replace(rank=last.get("rank"), reason=reason, lines=list(last.get("tail", [])))


def classify(record: Mapping[str, Any], out_of_memory: bool) -> Failure:
    """Derives exit code and class from the rank that failed first. `out_of_memory`: the kernel's counter has increased."""
    code, summary, tail = record["code"], record.get("summary", ""), list(record.get("tail", []))
    rank = record.get("rank")
    signal_number = _signal(record)
    if code in CLASSES:
        return Failure(code, class_of(code), rank, summary or "exit code %d" % code, tail)
    if _killed_for_memory(record, out_of_memory):
        reason = "the kernel killed a process of rank %s: out of host memory" % rank
        return Failure(OUT_OF_MEMORY, "host-memory", rank, reason, tail)
    if patterns.COLLECTIVE_TIMEOUT.search(_text(record)):
        named = summary if summary and not is_noise(summary) else ""
        timeout = next((line for line in tail if patterns.COLLECTIVE_TIMEOUT.search(line)), "a collective timed out")
        return Failure(HANG, class_of(HANG), rank, named or timeout, tail)
    if is_peer_lost(record):
        return Failure(TRY_AGAIN, "peer-lost", rank, summary or "the connection to another rank was lost", tail)
    if signal_number is not None:
        known = " (%s)" % signal.Signals(signal_number).name if signal_number in set(signal.Signals) else ""
        return Failure(128 + signal_number, "user-code", rank, summary or "killed by signal %d%s" % (signal_number, known), tail)
    return Failure(code, class_of(code), rank, summary or "exit code %d" % code, tail)


def parse_oom_kills(text: str) -> int:
    """The `oom_kill` counter in a memory.events or memory.oom_control file; 0 if it is missing."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "oom_kill" and words[1].isdigit():
            return int(words[1])
    return 0


def oom_kills() -> int:
    """Number of processes of this container that the out-of-memory killer has killed so far."""
    for path in _COUNTERS:
        try:
            return parse_oom_kills(path.read_text())
        except OSError:
            continue
    return 0


LIMIT = 1024
REASON_LIMIT = 300


def failure_text(end: Failure, step: Optional[int], existing: str = "") -> str:
    """The complete content of the file. `existing`: the text that the script has written to it, which is kept."""
    fields = {"slipway": 1, "class": end.kind, "code": end.code, "host": end.host, "rank": end.rank, "step": step}
    known, reason, head = {name: value for name, value in fields.items() if value is not None}, end.reason[:REASON_LIMIT], ""
    while not head or (len(head) > LIMIT and reason):
        reason = reason[: len(reason) // 2] if head else reason
        head = json.dumps(dict(known, reason=reason), separators=(",", ":"), ensure_ascii=False)
    existing = existing.rstrip("\n")
    if existing:
        together = existing + "\n" + head
        return together if len(together) <= LIMIT else existing
    # The end of a traceback is the most informative, so lines are taken from the end.
    kept: "list[str]" = []
    remaining = LIMIT - len(head)
    for line in reversed([line for line in end.lines if line.strip()]):
        if len(line) + 1 > remaining:
            break
        kept.insert(0, line)
        remaining -= len(line) + 1
    return "\n".join([head, *kept])


def write_failure(path: Path, end: Failure, step: Optional[int]) -> None:
    """Writes the failure file. An error of the file system is printed and must not hide the failure itself."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existing = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        path.write_text(without_hidden(failure_text(end, step, without_hidden(existing))), encoding="utf-8", errors="replace")
    except OSError as error:
        print("the failure file could not be written: %s" % error, flush=True)
