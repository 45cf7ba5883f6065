"""One rank of a world of any size: torch's `fake` process group, in which collectives return at once and nothing is sent."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.distributed.tensor import DTensor
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


#: Operations of torch.distributed, and those that DTensor calls (functional collectives).
_KINDS = {
    "_allgather_base_": "all_gather", "allgather_": "all_gather", "_reduce_scatter_base_": "reduce_scatter", "allreduce_": "all_reduce",
    "alltoall_base_": "all_to_all", "broadcast_": "broadcast", "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter", "all_reduce": "all_reduce", "all_to_all_single": "all_to_all",
}  # fmt: skip


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _group_of(args: tuple[Any, ...]) -> dist.ProcessGroup:
    if isinstance(args[-1], str):
        return _resolve_process_group(args[-1])
    boxed = (arg for arg in args if isinstance(arg, torch.ScriptObject) and "ProcessGroup" in str(arg._type()))
    return dist.ProcessGroup.unbox(next(boxed))


class _Recorder(TorchDispatchMode):
    def __init__(self, traffic: Traffic) -> None:
        super().__init__()
        self._traffic = traffic

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if DTensor in types:
            # It calls collectives on its parts, which come here then.
            return NotImplemented
        made = function(*args, **(kwargs or {}))
        if function.namespace in ("c10d", "_c10d_functional"):
            kind = _KINDS.get(function._schema.name.split("::")[1])
            if kind is not None:
                # A whole tensor may be a list of its parts.
                largest = max(sum(tensor.numel() * tensor.element_size() for tensor in _tensors(one)) for one in (*args, made))
                self._traffic.sent.append(Sent(kind, largest, _group_of(args).size()))
        return made


class LiveTensors(TorchDispatchMode):
    """The memory of the tensors that operations have made or read and that are still there."""

    def __init__(self) -> None:
        super().__init__()
        self._storages: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented
        made = function(*args, **(kwargs or {}))
        for tensor in _tensors((args, made)):
            storage = tensor.untyped_storage()
            self._storages[storage._cdata] = weakref.ref(storage)
        return made

    def bytes(self) -> int:
        found = [reference() for reference in self._storages.values()]
        return sum(storage.nbytes() for storage in found if storage is not None)


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
