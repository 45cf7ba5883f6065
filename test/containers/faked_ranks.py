"""One rank of a world of any size: torch's `fake` process group, in which collectives return at once and nothing is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Sent:
    """One collective as this rank called it. `bytes`: of the larger side, the gathered or whole tensor; `ranks`: of its group."""

    kind: str
    bytes: int
    ranks: int


@dataclass
class Traffic:
    """Collectives in the order of their calls."""

    sent: list[Sent] = field(default_factory=list)

    def clear(self) -> None:
        self.sent.clear()

    def count(self, kind: str) -> int:
        return sum(one.kind == kind and one.ranks > 1 for one in self.sent)

    def bytes(self, kind: str) -> int:
        return sum(one.bytes for one in self.sent if one.kind == kind and one.ranks > 1)


_KINDS = {
    "_allgather_base_": "all_gather", "allgather_": "all_gather", "_reduce_scatter_base_": "reduce_scatter", "allreduce_": "all_reduce",
    "alltoall_base_": "all_to_all", "broadcast_": "broadcast",
}  # fmt: skip


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _group_of(args: tuple[Any, ...]) -> dist.ProcessGroup:
    boxed = (arg for arg in args if isinstance(arg, torch.ScriptObject) and "ProcessGroup" in str(arg._type()))
    return dist.ProcessGroup.unbox(next(boxed))


class _Recorder(TorchDispatchMode):
    def __init__(self, traffic: Traffic) -> None:
        super().__init__()
        self._traffic = traffic

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "c10d":
            kind = _KINDS.get(function._schema.name.split("::")[1])
            if kind is not None:
                largest = max(tensor.numel() * tensor.element_size() for tensor in _tensors(args))
                self._traffic.sent.append(Sent(kind, largest, _group_of(args).size()))
        return function(*args, **(kwargs or {}))


@contextmanager
def faked_world(ranks: int, rank: int = 0) -> Iterator[Traffic]:
    """This process as `rank` of `ranks`; what it sends is recorded."""
    traffic = Traffic()
    dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
    try:
        with _Recorder(traffic):
            yield traffic
    finally:
        dist.destroy_process_group()
