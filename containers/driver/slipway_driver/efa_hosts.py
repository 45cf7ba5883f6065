"""Combines the EFA reports of all hosts. The slowest host determines the result, because every collective waits for it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, List, Mapping

#: Slowest first. "unknown" counts as slow, because it does not prove that EFA is used.
ORDER = ("sockets", "unknown", "efa", "efa+gdr", "single-host")
NAMED_HOSTS = 20


def merged(reports: Mapping[str, Mapping[str, Any]]) -> Dict[str, Any]:
    """Returns the report of the slowest host, with the number of hosts per verdict and the names of the slower hosts. In case of a tie, it
    is the host that uses the fewest interfaces, otherwise the first one.

    `reports`: by host, the results of EfaVerdict.report of the hosts that have reported so far, at least one.
    """
    slowest = min(reports, key=lambda host: (_place(reports[host]), reports[host].get("interfaces") or math.inf))
    fastest = max(_place(report) for report in reports.values())
    slower: List[str] = sorted(host for host, report in reports.items() if _place(report) < fastest)
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
