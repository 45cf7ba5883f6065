"""Compares the measured speeds of a host with the figures of its instance type. Pure functions."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Sequence

from slipway_driver.health_answers import Finding
from slipway_driver.tables import GPU_INSTANCES

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


def tuning(environ: Mapping[str, str]) -> List[str]:
    """Names of the variables in `environ` that change how NCCL communicates within a host."""
    set_to = {name: value.strip().lower() for name, value in environ.items() if _TUNING.fullmatch(name)}
    return sorted(name for name, value in set_to.items() if (name, value) != ("NCCL_PROTO", "simple"))


def speed_findings(instance_type: str, tflops: Sequence[float]) -> List[Finding]:
    """`tflops`: TFLOP/s of a bf16 matrix multiplication on each GPU, by index."""
    found: List[Finding] = []
    known, best = GPU_INSTANCES.get(instance_type), max(tflops, default=0.0)
    for index, got in enumerate(tflops):
        if got < SLOW_SHARE * best:
            found.append(Finding("matmul", "GPU %d: %.0f TFLOP/s in matrix multiplication, another GPU: %.0f" % (index, got, best), True))
    if known and known.bf16_tflops and tflops and best < REPORTED_SHARE * known.bf16_tflops:
        reason = "the fastest GPU: %.0f TFLOP/s in matrix multiplication; the peak of its type is %.0f" % (best, known.bf16_tflops)
        found.append(Finding("matmul", reason, best < REFUSED_SHARE * known.bf16_tflops))
    return found


def ring_findings(instance_type: str, gbps: float, tuned: Sequence[str]) -> List[Finding]:
    """`gbps`: bus bandwidth of the all-reduce in GB/s; `tuned`: the result of `tuning`, with which a slow host is not refused."""
    known = GPU_INSTANCES.get(instance_type)
    if known is None or known.ring_gbps is None or gbps >= RING_SHARE * known.ring_gbps:
        return []
    reason = "all-reduce between the GPUs: %.1f GB/s bus bandwidth; its type reaches %d over NVLink" % (gbps, known.ring_gbps)
    return [Finding("all-reduce", reason + (" (the run sets %s)" % ", ".join(tuned) if tuned else ""), not tuned)]


def measured_findings(instance_type: str, facts: Mapping[str, Any], tuned: Sequence[str]) -> List[Finding]:
    """Findings from the result of a measurement."""
    if facts.get("device") == "cpu":
        return [Finding("measurement", "the GPUs were not measured: PyTorch cannot use them: %s" % facts.get("why", ""), False)]
    found = speed_findings(instance_type, facts.get("tflops", []))
    return [*found, *(ring_findings(instance_type, float(facts["busBandwidthGBps"]), tuned) if "busBandwidthGBps" in facts else [])]
