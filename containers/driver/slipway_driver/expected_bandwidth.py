"""Published all_reduce bus bandwidth between hosts, in GB/s as defined by nccl-tests.

Values are for the measured message sizes. Two hosts may exceed the line rate because of NCCL's tree algorithm. Retrieved 2026-11-20.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

from slipway_driver.tables import EFA_INSTANCES

GIB = 1 << 30
_ADA = "awslabs/awsome-distributed-ai@95b939cdc5b2"


class Expected(NamedTuple):
    """`bus_gbps`: bus bandwidth in GB/s for messages of `size_bytes` on `hosts` hosts."""

    bus_gbps: float
    size_bytes: int
    hosts: int
    source: str


EXPECTED: Dict[str, Expected] = {
    # A report from 2022 of slow performance; no newer value was found for this type.
    "ml.p4d.24xlarge": Expected(57.2, GIB, 2, "NVIDIA/nccl issue 527"),
    "ml.p4de.24xlarge": Expected(76.79, GIB, 2, _ADA + " micro-benchmarks/nccl-tests/README.md"),
    "ml.p5.48xlarge": Expected(436.95, GIB, 2, _ADA + " micro-benchmarks/nccl-tests/README.md"),
    "ml.p5en.48xlarge": Expected(364.9, 4 * GIB, 4, "stas00/ml-engineering@744d01e18b79 network/README.md"),
    "ml.p6-b200.48xlarge": Expected(367.0, GIB, 4, _ADA + " p6-b200 results"),
    "ml.p6-b300.48xlarge": Expected(654.0, 16 * GIB, 2, _ADA + " p6-b300 results"),
}
#: A smaller share of the expected value indicates a problem. Published alarm levels are 57 % (p5) and 79 % (p4d).
ALARM_SHARE = 0.6


def line_rate_gbps(instance_type: str) -> Optional[float]:
    """Line rate of all network interfaces of one host, GB/s; None if unknown."""
    known = EFA_INSTANCES.get(instance_type)
    return known.line_rate_gbps / 8.0 if known and known.line_rate_gbps else None


def bus_bandwidth_gbps(size_bytes: int, seconds: float, ranks: int) -> float:
    """Bus bandwidth of all_reduce in GB/s: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md."""
    return size_bytes / seconds * 2 * (ranks - 1) / ranks / 1e9
