"""Process groups of all ranks on the host side (gloo), whose connections are opened when they are first used.

By default, gloo connects each rank to each other while a group is created, through one TCPStore: 46 minutes on 8,192 ranks
(pytorch/gloo#407, 2025-02-11). A run has four such groups. PyTorch before 2.8 does not have the option and ignores the variable.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist

#: PyTorch's variable for all groups of the process; a value of the run file applies.
VARIABLE = "TORCH_GLOO_LAZY_INIT"


@contextmanager
def connected_when_used() -> Iterator[None]:
    """Groups that are created within this context open a connection when it is first used."""
    before = os.environ.get(VARIABLE)
    os.environ.setdefault(VARIABLE, "1")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)


def host_group(timeout: timedelta | None = None) -> dist.ProcessGroup:
    """A gloo group of all ranks, which must all call this. `timeout`: of its collectives; None = PyTorch's default."""
    with connected_when_used():
        return dist.new_group(backend="gloo", timeout=timeout)
