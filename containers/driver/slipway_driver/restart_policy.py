"""When the ranks of all hosts are started again without a new job."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

#: Ends that another start in the same containers cannot mend, or that mean something else than a failure.
FINAL_KINDS = ("done", "environment", "loss", "efa", "hand-over", "host-memory")
#: S3's word, and that of the S3 connector for PyTorch, for a role that may not: the next start would be denied as well.
DENIED = re.compile(r"\b(AccessDenied|Forbidden)\b")
STORAGE_KINDS = ("checkpoint", "data")
#: Ends that another host's end explains.
FOLLOWING_KINDS = ("peer-lost",)


class Report(NamedTuple):
    """How one host's round ended. `step`: the last step seen there, None without one."""

    host: str
    code: int
    kind: str
    reason: str
    step: Optional[int]

    def as_message(self) -> Dict[str, Any]:
        return dict(self._asdict(), type="ended")


def report_from(message: Mapping[str, Any]) -> Report:
    return Report(
        host=str(message["host"]),
        code=int(message["code"]),
        kind=str(message["kind"]),
        reason=str(message["reason"]),
        step=message["step"],
    )


class Decision(NamedTuple):
    """`restart` on every host, or leave; `cause` is the failure that explains the others."""

    restart: bool
    cause: Report
    why: str


def cause_of(reports: Sequence[Report]) -> Report:
    """The report of the host that failed for a reason of its own; the first one when all are only followers."""
    failed = [report for report in reports if report.kind != "done"]
    own = [report for report in failed if report.kind not in FOLLOWING_KINDS]
    return (own or failed or list(reports))[0]


def last_step(reports: Sequence[Report]) -> Optional[int]:
    steps = [report.step for report in reports if report.step is not None]
    return max(steps) if steps else None


def decide(reports: Sequence[Report], missing: Sequence[str], restarts_left: int, ends: Sequence[Optional[int]]) -> Decision:
    """`reports` in the order in which they came; `missing`: hosts without one; `ends`: last steps of the rounds before this one."""
    cause, step = cause_of(reports), last_step(reports)
    finals: List[str] = [report.kind for report in reports if report.kind in FINAL_KINDS]
    if missing:
        return Decision(False, cause, "no answer from %s" % ", ".join(missing[:5]))
    if finals:
        return Decision(False, cause, "a restart does not mend: %s" % finals[0])
    if cause.kind in STORAGE_KINDS and DENIED.search(cause.reason):
        return Decision(False, cause, "a restart does not mend a denied access")
    if restarts_left <= 0:
        return Decision(False, cause, "no restarts are left")
    if step is None:
        return Decision(False, cause, "it failed before the first step")
    if ends and ends[-1] is not None and step <= ends[-1]:
        return Decision(False, cause, "no step beyond the %d of the start before" % ends[-1])
    return Decision(True, cause, "")
