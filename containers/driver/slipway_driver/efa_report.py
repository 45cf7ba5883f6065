"""Publishes the EFA verdict of a start: the first host writes it to the log and to efa.json, other hosts send theirs to the first host."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from typing import Any, Dict, Mapping, Optional

from slipway_driver.attempt import Attempt
from slipway_driver.coordinator import Coordinator
from slipway_driver.efa_verdict import EfaVerdict, refusal
from slipway_driver.errors import Failure
from slipway_driver.exit_codes import EFA, class_of
from slipway_driver.log import emit, log
from slipway_driver.member import Peers
from slipway_driver.progress import progress_line

#: How long the first host waits after a successful end for the last EFA reports of the other hosts, which end at the same time.
EFA_SECONDS = 5.0
#: The fields of the probe's result that are those of the job.
BANDWIDTH = ("busBandwidthGBps", "expectedGBps", "lineRatePercent")
#: Slowest first. "unknown" counts as slow, because it does not prove that EFA is used.
ORDER = ("sockets", "unknown", "efa", "efa+gdr", "single-host")
NAMED_HOSTS = 20


class EfaReport:
    """The verdict of one start on this host, and on the first host of the job."""

    def __init__(self, attempt: Attempt, peers: Peers) -> None:
        self._attempt, self._peers = attempt, peers
        cluster = attempt.cluster
        self.own = EfaVerdict(len(cluster.training_hosts), cluster.instance_type, attempt.devices)
        #: The verdict that was published last, and the number of hosts that it covers.
        self._reported: Optional[str] = None
        self._heard = 0
        self._complained = False
        self._lock = threading.Lock()
        #: The probe's result before this start on the host of rank 0; None on other hosts, or without a probe.
        self.bandwidth: Optional[Dict[str, Any]] = None

    def publish(self, wait_seconds: float = 0.0) -> None:
        """Publishes the current verdict if it has changed. On the first host, waits up to `wait_seconds` for those of the other hosts."""
        if self._attempt.job.efa == "off":
            return
        with self._lock:
            cluster, verdict = self._attempt.cluster, self.own.verdict
            # A first host that a spare has replaced has no verdict of its own.
            if cluster.takes_part and (cluster.is_first or verdict != self._reported):
                sent = self._peers.share("efa", self._report())
                self._reported = verdict if sent and not cluster.is_first else self._reported
            if cluster.is_first:
                assert isinstance(self._peers, Coordinator)
                self._write(self._peers.reports("efa", wait_seconds))

    def publish_changes(self) -> None:
        """Publishes changes after the first verdict, and on other hosts the first verdict."""
        if self._reported is not None or (self.own.settled and not self._attempt.cluster.is_first):
            self.publish()

    def refusal(self) -> Optional[Failure]:
        """The failure if the job must not continue, or not succeed, over this network; None otherwise."""
        reason = refusal(self._attempt.job.efa, self.own.report())
        if reason is None:
            return None
        self.publish()
        return Failure(EFA, class_of(EFA), None, reason, self.own.report()["evidence"][-5:])

    def _report(self) -> Dict[str, Any]:
        """The report of this host, with the probe's result if it has one."""
        return {**self.own.report(), **({name: self.bandwidth.get(name) for name in BANDWIDTH} if self.bandwidth else {})}

    def _write(self, reports: Dict[str, Dict[str, Any]]) -> None:
        """Writes efa.json if anything has changed; writes the event if the verdict has changed or all hosts have reported."""
        cluster = self._attempt.cluster
        if not reports:
            return
        report = merged(reports)
        reported, self._reported = self._reported, report["verdict"]
        heard, self._heard = self._heard, len(reports)
        if reported == self._reported and heard == self._heard:
            return
        report.update({name: reports[cluster.master][name] for name in BANDWIDTH if name in reports.get(cluster.master, {})})
        if reported != self._reported or self._heard == len(cluster.training_hosts):
            emit(progress_line("efa", **report))
        try:
            (self._attempt.paths.output_data / "efa.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            if not self._complained:
                self._complained = True
                log("efa.json could not be written: %s" % error)


def merged(reports: Mapping[str, Mapping[str, Any]]) -> Dict[str, Any]:
    """Returns the report of the slowest host, with the number of hosts per verdict and the names of the slower hosts. In case of a tie, it
    is the host that uses the fewest interfaces, otherwise the first one.

    `reports`: by host, the results of EfaVerdict.report of the hosts that have reported so far, at least one.
    """
    slowest = min(reports, key=lambda host: (_place(reports[host]), reports[host].get("interfaces") or math.inf))
    fastest = max(_place(report) for report in reports.values())
    slower = sorted(host for host, report in reports.items() if _place(report) < fastest)
    counts = Counter(ORDER[_place(report)] for report in reports.values())
    return {
        **reports[slowest],
        "host": slowest,
        "hosts": {verdict: counts[verdict] for verdict in ORDER if counts[verdict]},
        "slowerHosts": slower[:NAMED_HOSTS],
    }


def _place(report: Mapping[str, Any]) -> int:
    verdict = report.get("verdict")
    return ORDER.index(verdict) if verdict in ORDER else ORDER.index("unknown")
