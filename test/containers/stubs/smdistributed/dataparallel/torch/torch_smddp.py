"""Contract of SMDDP: the import registers the backend "smddp"; without it init_process_group refuses the name.

Source: SageMaker developer guide, data-parallel-modify-sdp-pt (retrieved 2026-11-20). The traffic here is gloo's.
"""

import torch.distributed as dist
from stub_log import record


def _make(store, rank, size, timeout):
    record("smddp group", ranks=size)
    return dist.ProcessGroupGloo(store, rank, size, timeout)


record("import smddp")
dist.Backend.register_backend("smddp", _make, devices=["cpu", "cuda"])
