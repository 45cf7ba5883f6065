"""When the ranks of all hosts are started again without a new job, and on which hosts."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

#: Ends that another start in the same containers cannot fix, or that mean something else than a failure.
FINAL_KINDS = ("done", "environment", "loss", "efa", "hand-over", "host-memory")
#: S3's word, and that of the S3 connector for PyTorch, for a role that may not: the next start would be denied as well.
DENIED = re.compile(r"\b(AccessDenied|Forbidden)\b")
STORAGE_KINDS = ("checkpoint", "data")
#: Ends that another host's end explains.
FOLLOWING_KINDS = ("peer-lost",)
#: The host itself is broken: nothing starts on it again.
HARDWARE = "hardware"


class Report(NamedTuple):
    """How one host's round ended. `step`: the last step seen there, None without one."""

    host: str
    code: int
    kind: str
    reason: str
    step: Optional[int]

    def as_message(self) -> Dict[str, Any]:
        """The report as hosts send it to the first one."""
        return dict(self._asdict(), type="ended")


def report_from(message: Mapping[str, Any]) -> Report:
    """The report in a message. Raises KeyError or ValueError for one that is not whole."""
    return Report(
        host=str(message["host"]),
        code=int(message["code"]),
        kind=str(message["kind"]),
        reason=str(message["reason"]),
        step=message["step"],
    )


class Decision(NamedTuple):
    """`restart` on `hosts`, in the order of their ranks, or leave; `cause` is the failure that explains the others."""

    restart: bool
    cause: Report
    why: str
    hosts: Tuple[str, ...] = ()


class Start(NamedTuple):
    """A start of the ranks before this one: the last step seen in it, and the host whose failure ended it."""

    step: Optional[int]
    cause: str


def cause_of(reports: Sequence[Report]) -> Report:
    """The report of the host that is broken, else that failed for a reason of its own; the first one when all are only followers."""
    failed = [report for report in reports if report.kind != "done"]
    broken = [report for report in failed if report.kind == HARDWARE]
    own = [report for report in failed if report.kind not in FOLLOWING_KINDS]
    return (broken or own or failed or list(reports))[0]


def last_step(reports: Sequence[Report]) -> Optional[int]:
    """The greatest step of the reports; None when none names one."""
    steps = [report.step for report in reports if report.step is not None]
    return max(steps) if steps else None


def _is_stuck(step: Optional[int], starts: Sequence[Start]) -> bool:
    """Whether the start before this one has come as far."""
    before = starts[-1].step if starts else None
    return step is not None and before is not None and step <= before


def _refused(reports: Sequence[Report], missing: Sequence[str], restarts_left: int) -> str:
    """Why no start can help whichever hosts take part; "" when one may."""
    cause = cause_of(reports)
    finals: List[str] = [report.kind for report in reports if report.kind in FINAL_KINDS]
    if missing:
        return "no answer from %s" % ", ".join(missing[:5])
    if finals:
        return "a restart does not fix: %s" % finals[0]
    if cause.kind in STORAGE_KINDS and DENIED.search(cause.reason):
        return "a restart does not fix a denied access"
    if restarts_left <= 0:
        return "no restarts are left"
    if last_step(reports) is None and cause.kind != HARDWARE:
        return "it failed before the first step"
    return ""


def replaced(hosts: Sequence[str], broken: Sequence[str], spares: Sequence[str]) -> Tuple[Tuple[str, ...], str]:
    """`hosts` with a spare in the place of each broken one, and why that cannot be done ("" when it can).

    The first host holds the channels to all others and stays: its place cannot be taken.
    """
    if hosts[0] in broken:
        return (), "the first host's own hardware is broken"
    if len(broken) > len(spares):
        return (), "%s: no spare host is left" % ", ".join(broken[:5])
    place = dict(zip(broken, spares))
    return tuple(place.get(host, host) for host in hosts), ""


def decide(
    reports: Sequence[Report],
    missing: Sequence[str],
    restarts_left: int,
    starts: Sequence[Start],
    hosts: Sequence[str],
    spares: Sequence[str] = (),
) -> Decision:
    """`reports` in the order in which they came; `missing`: hosts without one; `starts`: those before this one; `hosts`: that train now,
    in the order of their ranks; `spares`: that wait."""
    cause, step = cause_of(reports), last_step(reports)
    why = _refused(reports, missing, restarts_left)
    if why:
        return Decision(False, cause, why)
    broken = [report.host for report in reports if report.kind == HARDWARE]
    if not broken and _is_stuck(step, starts):
        # The same host twice at the same place: what is wrong with it may be nothing that it can see itself.
        suspect = cause.host == starts[-1].cause and cause.host != hosts[0] and bool(spares)
        if not suspect:
            return Decision(False, cause, "no step beyond the %s of the start before" % starts[-1].step)
        broken = [cause.host]
    then, why = replaced(hosts, broken, spares)
    return Decision(not why, cause, why, then)
