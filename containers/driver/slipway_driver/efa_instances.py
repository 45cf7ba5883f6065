"""What the driver must know of instance types with an Elastic Fabric Adapter.

Sources: aws-ofi-nccl v1.21.1 src/platform-aws.cpp (GPUDirect required, default transport), Amazon EC2 user guide "Elastic Fabric
Adapter" and awsome-distributed-training (interface counts); retrieved 2026-11-20. A type that is not here is treated by what its
devices show.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional


class EfaInstance(NamedTuple):
    """One instance type. `interfaces`: EFA devices; `gdr_required`: the plugin refuses to run without GPUDirect RDMA."""

    interfaces: int
    gdr_required: bool
    #: NCCL_PROTO=simple takes LL and LL128 away where the plugin itself would leave them on.
    proto_simple_harms: bool
    #: Line rate of all interfaces together, Gbit/s; None where the facts do not say.
    line_rate_gbps: Optional[int]


EFA_INSTANCES: Dict[str, EfaInstance] = {
    "ml.g4dn.8xlarge": EfaInstance(1, False, False, 50),
    "ml.g4dn.12xlarge": EfaInstance(1, False, False, 50),
    "ml.p3dn.24xlarge": EfaInstance(1, False, False, 100),
    "ml.g5.48xlarge": EfaInstance(1, False, False, 100),
    "ml.p4d.24xlarge": EfaInstance(4, True, False, 400),
    "ml.p4de.24xlarge": EfaInstance(4, True, False, 400),
    "ml.p5.4xlarge": EfaInstance(1, False, True, None),
    "ml.p5.48xlarge": EfaInstance(32, True, True, 3200),
    "ml.p5e.48xlarge": EfaInstance(32, True, True, 3200),
    "ml.p5en.48xlarge": EfaInstance(16, True, True, 3200),
    "ml.p6-b200.48xlarge": EfaInstance(8, True, True, 3200),
    "ml.p6-b300.48xlarge": EfaInstance(16, True, True, 6400),
    "ml.p6e-gb200.36xlarge": EfaInstance(4, True, True, None),
}
