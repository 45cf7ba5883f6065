"""What the answers of NVIDIA's tools, and the measurements, say about a host. Pure functions without subprocesses.

Formats: https://docs.nvidia.com/deploy/nvidia-smi/ (`--query-gpu`, `--query-remapped-rows`, `nvlink --status`, "Return Value") and
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html (`dcgmi diag --json`), 2026-11-22. Output that cannot be
parsed is ignored: a host is rejected only for a problem that a tool reports.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from slipway_driver.gpus import Answer, Gpu, gpu_query, rows
from slipway_driver.health import ECC_QUERY
from slipway_driver.inventory import count_gpus
from slipway_driver.tables import EFA_INSTANCES, GPU_INSTANCES

_CLOCKS = "index,{0}.hw_thermal_slowdown,{0}.hw_power_brake_slowdown"
#: The quick commands by the names of their answers.
QUICK: Mapping[str, Sequence[str]] = {
    "gpus": ("nvidia-smi", "--list-gpus"),
    "memory": ECC_QUERY,
    "remap": gpu_query("gpu_bus_id,remapped_rows.pending,remapped_rows.failure", "query-remapped-rows"),
    "clocks": gpu_query(_CLOCKS.format("clocks_event_reasons")),
    "links": ("nvidia-smi", "nvlink", "--status"),
    "kernel": ("dmesg", "--notime"),
}
#: nvidia-smi takes seconds on eight GPUs without persistence mode. A host that leaves it without an answer so often is refused.
ANSWER_SECONDS, TRIES = 30.0, 2
#: Exit codes of nvidia-smi for a host without a usable GPU: the driver is not loaded; a GPU has fallen off the bus.
UNUSABLE = (9, 15)
#: Exit codes of nvidia-smi beside a complete answer; 14 reports a corrupted infoROM.
COMPLETE = (0, 14)
#: Exit codes of nvidia-smi without a meaning for the host: it does not know the query, or the container does not permit it.
MEANINGLESS = (*COMPLETE, 2, 3, 4, 12, 13)
#: Xids after which NVIDIA recommends a GPU reset or a repair of the host
#: (https://docs.nvidia.com/deploy/xid-errors/, "Resolution bucket", 2026-11-22): uncorrectable memory error, row remapping failure, GPU off
#: the bus, NVLink error, uncontained memory error, GSP timeouts and GSP errors; of the NVLinks of Blackwell (144 to 150), those that are
#: not called "Nonfatal". Xid 45 ends a channel and names the one that caused it, whose own line may no longer be in the log. Xid 154 says
#: what the GPU needs, whatever the cause.
FATAL_XIDS = frozenset({48, 64, 74, 79, 95, 119, 120, 140, *range(144, 151), 154})
_XID = re.compile(
    r"NVRM: Xid \(([^)]*)\): (?:45,.{0,99} caused by previous Xid )?(\d+)\b(?!, \w+ Nonfatal\b|, .* to \w+ \((?:None|Drain P2P)\))"
)
_LINK, _GPU = re.compile(r"^\s*Link \d+:\s*(.+)$"), re.compile(r"^GPU (\d+):")
_YES = ("1", "yes")

#: A GPU whose matrix multiplication is slower than SLOW_SHARE of the fastest GPU of its host is defective: healthy GPUs of one host differ
#: by a few percent.
SLOW_SHARE = 0.75
#: Of the peak of the type. Healthy GPUs reach about 80 %: an H200 measured 801 of 989 TFLOP/s. Below REPORTED_SHARE, the clocks or an old
#: library may explain the result, so it is only logged; below REFUSED_SHARE the host is defective.
REPORTED_SHARE, REFUSED_SHARE = 0.5, 1 / 3
#: Of the bus bandwidth of a ring over NVLink. NCCL reaches it or more; through host memory, without NVLink, it reaches about 20 GB/s.
RING_SHARE = 0.25
#: Variables with which NCCL may be slow on a healthy host. `NCCL_PROTO=simple` is not among them: it does not slow down large messages.
_TUNING = re.compile(r"NCCL_(?:ALGO|PROTO|P2P_\w+|SHM_\w+|NVLS_\w+|CUMEM_\w+|(?:MIN|MAX)_\w+|NTHREADS|BUFFSIZE|TOPO_FILE|GRAPH_FILE)")


class Finding(NamedTuple):
    """One problem of a host. `refuses`: training must not start on the host; otherwise the finding is only logged."""

    check: str
    reason: str
    refuses: bool


class Place(NamedTuple):
    """The expected properties of a host. `efa_needed`: the run does not continue without EFA; `known_bad`: its GPUs that earlier jobs have
    found broken; `suspect`: those that they may have found broken."""

    host: str
    instance_type: str
    efa_devices: int
    efa_needed: bool
    known_bad: Sequence[Gpu] = ()
    suspect: Sequence[Gpu] = ()


def quick_findings(place: Place, replies: Mapping[str, Answer]) -> List[Finding]:
    """Findings from the answers of the quick commands."""
    texts = {name: answer.text for name, answer in replies.items()}
    return [*count_findings(place, replies["gpus"]), *tool_findings(place, replies), *answer_findings(texts)]


def count_findings(place: Place, gpus: Answer) -> List[Finding]:
    """Compares the number of GPUs and EFA devices with the instance type. Additional devices are ignored."""
    found: List[Finding] = []
    gpu, efa = GPU_INSTANCES.get(place.instance_type), EFA_INSTANCES.get(place.instance_type)
    counted = count_gpus(gpus.text or "")
    # An nvidia-smi that lists nothing and fails has not counted: it may lack a permission or a library.
    if gpu and gpus.text is not None and counted < gpu.count and (counted or gpus.code in COMPLETE):
        found.append(Finding("gpus", "%d of %d GPUs respond" % (counted, gpu.count), True))
    # No EFA device at all is caused by the image or the network configuration, which the EFA verdict covers.
    if efa and 0 < place.efa_devices < efa.interfaces:
        found.append(Finding("efa", "%d of %d EFA devices are present" % (place.efa_devices, efa.interfaces), place.efa_needed))
    return found


def tool_findings(place: Place, replies: Mapping[str, Answer]) -> List[Finding]:
    """What the end of nvidia-smi says about a host of a type with GPUs."""
    found: List[Finding] = []
    for name, answer in replies.items():
        if QUICK[name][0] != "nvidia-smi" or place.instance_type not in GPU_INSTANCES:
            continue
        query = " ".join(QUICK[name][:2]).partition("=")[0]
        if answer.late:
            tries = " in %d tries" % TRIES if name == "gpus" else ""
            found.append(Finding("nvidia-smi", "%s: no answer in %d s%s" % (query, ANSWER_SECONDS, tries), name == "gpus"))
        elif answer.code is not None and answer.code not in MEANINGLESS:
            last = ([line.strip() for line in (answer.text or "").splitlines() if line.strip()] or ["no output"])[-1]
            found.append(Finding("nvidia-smi", "%s: exit code %d: %s" % (query, answer.code, last), answer.code in UNUSABLE))
    return found


def answer_findings(texts: Mapping[str, Optional[str]]) -> Iterator[Finding]:
    """The problems that the quick commands print, by the names of QUICK."""
    for index, errors in rows(texts.get("memory"), 2):  # Errors since the kernel driver was loaded.
        if index.isdigit() and errors.isdigit() and int(errors) > 0:
            yield Finding("memory", "GPU %s has %s uncorrectable memory errors" % (index, errors), True)
    for bus, pending, failure in rows(texts.get("remap"), 3):
        if failure.lower() in _YES:
            yield Finding("memory", "GPU at %s has no spare memory rows left" % bus, True)
        elif pending.lower() in _YES:
            yield Finding("memory", "GPU at %s needs a reset to remap a memory row" % bus, True)
    for index, *slowdowns in rows(texts.get("clocks"), 3):  # Possibly temporary.
        for active, why in zip(slowdowns, ("heat", "an external power brake")):
            if active.lower() == "active":
                yield Finding("clocks", "GPU %s runs at lower clocks because of %s" % (index, why), False)
    for gpu, inactive in _inactive_links(texts.get("links") or "").items():
        # A GPU without NVLink has no links, or only inactive ones.
        if 0 < sum(inactive) < len(inactive):
            yield Finding("nvlink", "GPU %s has %d of %d NVLinks inactive" % (gpu, sum(inactive), len(inactive)), True)
    for device, xid in dict.fromkeys(_XID.findall(texts.get("kernel") or "")):
        if int(xid) in FATAL_XIDS:
            yield Finding("xid", "the kernel has logged Xid %s of %s" % (xid, device), True)


def _inactive_links(text: str) -> Dict[str, List[bool]]:
    found: Dict[str, List[bool]] = {}
    gpu = ""
    for line in text.splitlines():
        head, link = _GPU.match(line), _LINK.match(line)
        gpu = head.group(1) if head else gpu
        if link and gpu:
            found.setdefault(gpu, []).append("inactive" in link.group(1).lower())
    return found


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
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _tests(inner, name)


def tuning(environ: Mapping[str, str]) -> List[str]:
    """Names of the variables in `environ` that change how NCCL communicates within a host."""
    set_to = {name: value.strip().lower() for name, value in environ.items() if _TUNING.fullmatch(name)}
    return sorted(name for name, value in set_to.items() if (name, value) != ("NCCL_PROTO", "simple"))


def measured_findings(instance_type: str, facts: Mapping[str, Any], tuned: Sequence[str]) -> List[Finding]:
    """Findings from the result of a measurement: `tflops` of a bf16 matrix multiplication on each GPU, and the bus bandwidth of an
    all-reduce. `tuned`: the result of `tuning`, with which a slow host is not refused."""
    if facts.get("device") == "cpu":
        return [Finding("measurement", "the GPUs were not measured: PyTorch cannot use them: %s" % facts.get("why", ""), False)]
    known, tflops = GPU_INSTANCES.get(instance_type), facts.get("tflops", [])
    best = max(tflops, default=0.0)
    slow = [(index, got, best) for index, got in enumerate(tflops) if got < SLOW_SHARE * best]
    found = [Finding("matmul", "GPU %d: %.0f TFLOP/s in matrix multiplication, another GPU: %.0f" % one, True) for one in slow]
    if known and known.bf16_tflops and tflops and best < REPORTED_SHARE * known.bf16_tflops:
        reason = "the fastest GPU: %.0f TFLOP/s in matrix multiplication; the peak of its type is %.0f" % (best, known.bf16_tflops)
        found.append(Finding("matmul", reason, best < REFUSED_SHARE * known.bf16_tflops))
    gbps = facts.get("busBandwidthGBps")
    if gbps is not None and known and known.ring_gbps is not None and gbps < RING_SHARE * known.ring_gbps:
        reason = "all-reduce between the GPUs: %.1f GB/s bus bandwidth; its type reaches %d over NVLink" % (gbps, known.ring_gbps)
        found.append(Finding("all-reduce", reason + (" (the run sets %s)" % ", ".join(tuned) if tuned else ""), not tuned))
    return found
