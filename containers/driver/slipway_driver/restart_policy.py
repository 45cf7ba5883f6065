"""Decides whether the ranks of all hosts start again without a new job, and on which hosts."""

from __future__ import annotations

import re
import time
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from slipway_driver.exit_codes import HANG, TRY_AGAIN, class_of
from slipway_driver.tables import STORAGE_DENIED

#: Failure classes that another start in the same containers cannot fix, or that are not failures.
FINAL_KINDS = ("done", "environment", "loss", "efa", "hand-over", "host-memory")
DENIED = re.compile("|".join(STORAGE_DENIED))
STORAGE_KINDS = ("checkpoint", "data")
#: Failure classes that are consequences of another host's failure.
FOLLOWING_KINDS = ("peer-lost",)
#: Failure classes whose host is not known to be the cause: the first host reports every hang.
NAMELESS_KINDS = (*FOLLOWING_KINDS, class_of(HANG))
#: A signal has ended the driver of the host, which was started again.
DRIVER_LOST = "driver-lost"
#: Why nothing starts again after SIGTERM.
STOPPED = "the job is being stopped"
#: The host itself is broken; the ranks must not start on it again.
HARDWARE = "hardware"
#: Seconds in which the number of restarts is limited.
WINDOW_SECONDS = 3600.0


class Report(NamedTuple):
    """The outcome of one host. `step`: the last step seen on the host, None before the first step."""

    host: str
    code: int
    kind: str
    reason: str
    step: Optional[int]


class Decision(NamedTuple):
    """Whether to `restart` on `hosts` (in rank order) or to exit; `cause` is the failure that explains the others."""

    restart: bool
    cause: Report
    why: str
    hosts: Tuple[str, ...] = ()
    #: The number of the start that follows.
    number: int = 0


def decided(content: Sequence[Any]) -> Tuple[Decision, str]:
    """A decision and a checkpoint, from their JSON."""
    decision, resume_from = Decision(*content[0]), content[1]
    return decision._replace(cause=Report(*decision.cause), hosts=tuple(decision.hosts)), resume_from


class Start(NamedTuple):
    """A previous start of the ranks: the last step seen in it, and the host whose failure ended it."""

    step: Optional[int]
    cause: str


def cause_of(reports: Sequence[Report]) -> Report:
    """The report of a broken host, otherwise of a host with an error of its own, otherwise the first report."""
    failed = [report for report in reports if report.kind != "done"]
    broken = [report for report in failed if report.kind == HARDWARE]
    own = [report for report in failed if report.kind not in FOLLOWING_KINDS]
    return (broken or own or failed or list(reports))[0]


def lost_driver(host: str) -> Report:
    """The report of a host whose driver was started again: it does not know what its ranks have done."""
    return Report(host, TRY_AGAIN, DRIVER_LOST, "a signal has ended the driver of %s" % host, None)


def last_step(reports: Sequence[Report]) -> Optional[int]:
    """The highest step of the reports; None if no report has one."""
    steps = [report.step for report in reports if report.step is not None]
    return max(steps) if steps else None


def _refused(reports: Sequence[Report], missing: Sequence[str], restarts_left: int) -> str:
    """The reason why another start cannot help on any hosts; "" if it may help."""
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
    if last_step(reports) is None and cause.kind not in (HARDWARE, DRIVER_LOST):
        return "it failed before the first step"
    return ""


def decide(
    reports: Sequence[Report], missing: Sequence[str], restarts_left: int, starts: Sequence[Start], hosts: Sequence[str],
    spares: Sequence[str],
) -> Decision:  # fmt: skip
    """Decides after a start has ended.

    `reports`: in order of arrival; `missing`: hosts without a report; `starts`: previous starts; `hosts`: current training hosts in rank
    order; `spares`: available spare hosts.
    """
    cause, step = cause_of(reports), last_step(reports)
    why = _refused(reports, missing, restarts_left)
    if why:
        return Decision(False, cause, why)
    broken = [report.host for report in reports if report.kind == HARDWARE]
    before = starts[-1].step if starts else None
    if not broken and step is not None and before is not None and step <= before:
        # The same host has failed twice at the same step: it may have a fault that its own checks cannot detect.
        suspect = cause.host == starts[-1].cause and cause.kind not in NAMELESS_KINDS and bool(spares)
        if not suspect:
            return Decision(False, cause, "no progress beyond step %s of the previous start" % before)
        broken = [cause.host]
    if len(broken) > len(spares):
        return Decision(False, cause, "%s: no spare host is left" % ", ".join(broken[:5]))
    # The driver of the first host coordinates the others also when a spare has replaced it, as long as its container runs.
    place = dict(zip(broken, spares))
    return Decision(True, cause, "", tuple(place.get(host, host) for host in hosts), len(starts) + 1)


class RestartBudget:
    """Allows `most` restarts within any hour, without a limit for the attempt: on 512 hosts, a failure that a restart fixes happens every
    few hours. Repeated failures are stopped by the rule that every start must reach a later step."""

    def __init__(self, most: int) -> None:
        self._most = most
        #: When the restarts of the last hour were, by the clock.
        self.taken: List[float] = []

    def left(self) -> int:
        """Number of restarts that are allowed now."""
        since = time.monotonic() - WINDOW_SECONDS
        self.taken = [at for at in self.taken if at > since]
        return self._most - len(self.taken)

    def take(self) -> None:
        """Records a restart at the current time."""
        self.taken.append(time.monotonic())
