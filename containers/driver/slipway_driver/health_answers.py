"""Parses the output of NVIDIA's tools into findings. Pure functions without subprocesses.

Formats: https://docs.nvidia.com/deploy/nvidia-smi/ (`--query-gpu`, `--query-remapped-rows`, `nvlink --status`) and
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html (`dcgmi diag --json`), 2026-11-22. Output that cannot be
parsed is ignored: a host is rejected only for a problem that a tool reports.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from slipway_driver.tool import rows

_LINK = re.compile(r"^\s*Link \d+:\s*(.+)$")
_GPU = re.compile(r"^GPU (\d+):")
_YES = ("1", "yes")


class Finding(NamedTuple):
    """One problem of a host. `refuses`: training must not start on the host; otherwise the finding is only logged."""

    check: str
    reason: str
    refuses: bool


def memory_findings(text: Optional[str]) -> List[Finding]:
    """Parses `index, ecc.errors.uncorrected.volatile.total` of each GPU: errors since the kernel driver was loaded."""
    bad = [(index, errors) for index, errors in rows(text, 2) if index.isdigit() and errors.isdigit() and int(errors) > 0]
    return [Finding("memory", "GPU %s has %s uncorrectable memory errors" % (index, errors), True) for index, errors in bad]


def remap_findings(text: Optional[str]) -> List[Finding]:
    """Parses `gpu_bus_id, remapped_rows.pending, remapped_rows.failure`: a row remapping that needs a GPU reset or that has failed."""
    found = []
    for bus, pending, failure in rows(text, 3):
        if failure.lower() in _YES:
            found.append(Finding("memory", "GPU at %s has no spare memory rows left" % bus, True))
        elif pending.lower() in _YES:
            found.append(Finding("memory", "GPU at %s needs a reset to remap a memory row" % bus, True))
    return found


def clock_findings(text: Optional[str]) -> List[Finding]:
    """Parses `index, hw_thermal_slowdown, hw_power_brake_slowdown`: the hardware has reduced a GPU's clocks, possibly temporarily."""
    found = []
    for index, thermal, brake in rows(text, 3):
        for active, why in ((thermal, "heat"), (brake, "an external power brake")):
            if active.lower() == "active":
                found.append(Finding("clocks", "GPU %s runs at lower clocks because of %s" % (index, why), False))
    return found


def link_findings(text: Optional[str]) -> List[Finding]:
    """Parses `nvlink --status`: GPUs with some inactive links. A GPU without NVLink, or with all links inactive, is ignored."""
    found = []
    for gpu, links in _links(text or "").items():
        inactive = sum("inactive" in link.lower() for link in links)
        if 0 < inactive < len(links):
            found.append(Finding("nvlink", "GPU %s has %d of %d NVLinks inactive" % (gpu, inactive, len(links)), True))
    return found


def _links(text: str) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    gpu = ""
    for line in text.splitlines():
        head, link = _GPU.match(line), _LINK.match(line)
        if head:
            gpu = head.group(1)
        elif link and gpu:
            found.setdefault(gpu, []).append(link.group(1))
    return found


#: Xids after which NVIDIA recommends a GPU reset or a repair of the host
#: (https://docs.nvidia.com/deploy/xid-errors/, "Resolution bucket", 2026-11-22): uncorrectable memory error, row remapping failure, GPU off
#: the bus, NVLink error, uncontained memory error, GSP timeouts and GSP errors.
FATAL_XIDS = frozenset({48, 64, 74, 79, 95, 119, 120, 140})
_XID = re.compile(r"NVRM: Xid \(([^)]*)\): (\d+)")


def xid_findings(kernel_log: Optional[str]) -> List[Finding]:
    """Parses the kernel log, if the container may read it."""
    seen: Dict[Tuple[str, int], None] = {}
    for device, xid in _XID.findall(kernel_log or ""):
        if int(xid) in FATAL_XIDS:
            seen[(device, int(xid))] = None
    return [Finding("xid", "the kernel has logged Xid %d of %s" % (xid, device), True) for device, xid in seen]


def dcgm_findings(text: Optional[str]) -> List[Finding]:
    """Failed tests in the output of `dcgmi diag --json`, at any nesting depth because the layout depends on the version."""
    start = (text or "").find("{")
    try:
        answer = json.loads((text or "")[start:]) if start >= 0 else None
    except ValueError:
        return []
    failed = sorted({name for name, status in _tests(answer, "") if status.lower() == "fail"})
    return [Finding("dcgm", "DCGM's test %s fails" % name, True) for name in failed]


def _tests(node: Any, name: str) -> Iterator[Tuple[str, str]]:
    if isinstance(node, dict):
        name = str(node.get("name", name))
        if isinstance(node.get("status"), str):
            yield name, node["status"]
        for inner in node.values():
            yield from _tests(inner, name)
    elif isinstance(node, list):
        for inner in node:
            yield from _tests(inner, name)
