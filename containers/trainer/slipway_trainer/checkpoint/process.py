"""A process beside each rank that writes its checkpoints, so that training has the interpreter for itself meanwhile.

It is forked before the rank has touched a GPU, a network or a thread of its own: it costs no second import of PyTorch, and no memory but
what it writes. It learns once where the state's copy lies (shared_state.py) and which part of each tensor the rank holds, as DCP's own
save plan, so that it needs neither the device nor the mesh of the run. The processes of all ranks form a group of their own, in which DCP
saves as it would in the ranks.

torch's own (`async_checkpointer_type=PROCESS`, PyTorch 2.15) is not used: it starts at the first save; it dies of the SIGTERM after which
the last save is due; it goes on without its rank, into a checkpoint that the next start may be writing; and it opens shared memory again
for each tensor of each save. Here SIGTERM and Ctrl-C do nothing, and the kernel ends the process with its rank.
"""

import ctypes
import gc
import os
import signal
import threading
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan

from slipway_trainer.checkpoint.local_copies import CopyingStore
from slipway_trainer.checkpoint.shared_state import Place, tensors_at
from slipway_trainer.checkpoint.store import Store, open_store
from slipway_trainer.checkpoint.writing import CheckpointWriter, first_reason
from slipway_trainer.exits import CheckpointFailed

#: prctl(2): the signal that a process gets when its parent dies.
PR_SET_PDEATHSIG = 1
#: Until the processes of all ranks have met, and for how long one waits for the others' storage.
JOIN_TIMEOUT = timedelta(minutes=45)
#: What ends a rank politely, and after which its last save is written.
_POLITE = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@dataclass(frozen=True)
class Target:
    """Where checkpoints go. `copies`: the folder of this host that keeps copies; empty = none."""

    uri: str
    copies: str
    keep: int

    def open(self) -> Store:
        """The store, as a rank uses it."""
        store = open_store(self.uri)
        return CopyingStore(store, Path(self.copies)) if self.copies and self.uri.startswith("s3://") else store


@dataclass(frozen=True)
class _Meeting:
    """How the processes of all ranks find each other: keys below `prefix` in the store that the ranks have met at."""

    prefix: str
    rank: int
    ranks: int

    def join(self) -> dist.ProcessGroup:
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.PrefixStore(self.prefix, dist.TCPStore(address, port, is_master=False))
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.ranks, timeout=JOIN_TIMEOUT)
        return dist.group.WORLD


@dataclass(frozen=True)
class _Setup:
    target: Target
    meeting: _Meeting
    places: list[Place]
    plan: SavePlan


class _LocalPlanner(DefaultSavePlanner):
    """DCP's planner with the plan that the rank has made of its sharded tensors, over their local parts."""

    def __init__(self, plan: SavePlan) -> None:
        super().__init__()
        self._local_plan = plan

    def create_local_plan(self) -> SavePlan:
        self.plan = self._local_plan
        return self.plan

    def lookup_object(self, index: MetadataIndex) -> Any:
        return self.state_dict[index.fqn]


class _Work:
    """What the process does for its rank."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._write: Callable[[Mapping[str, Any]], None] | None = None

    def carry_out(self, order: Any) -> None:
        """A `_Setup`, or the facts of a step whose state lies in the shared memory. Raises whatever went wrong."""
        if isinstance(order, _Setup):
            self._set_up(order)
            return
        assert self._write is not None, "the places of the state come before it"
        self._write(order)

    def _set_up(self, order: _Setup) -> None:
        if not dist.is_initialized():
            order.meeting.join()
        writer = CheckpointWriter(order.target.open(), order.target.keep, None)
        snapshot = tensors_at(self._descriptor, order.places)
        self._write = lambda facts: writer.write(facts, snapshot, _LocalPlanner(order.plan))


def _serve(pipe: Connection, descriptor: int, rank: int) -> NoReturn:
    """The life of the process. `rank`: the process id of the rank that it writes for."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != rank:
        os._exit(1)
    gc.freeze()
    work = _Work(descriptor)
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            work.carry_out(order)
            pipe.send(None)
        except BaseException as error:  # DCP's are no Exceptions. The rank decides what becomes of the run.
            pipe.send(first_reason(error) or type(error).__name__)


class SaverProcess:
    """The rank's side of the process. `start` it before anything of CUDA or torch.distributed."""

    def __init__(self, pid: int, pipe: Connection, descriptor: int) -> None:
        #: The shared memory.
        self.descriptor = descriptor
        self.pid = pid
        self._pipe = pipe
        self._ended: int | None = None
        self._reaping = threading.Lock()

    @classmethod
    def start(cls) -> "SaverProcess":
        """Forks the process. It gets no signal between its first moment and the one in which it could say that it does not want any."""
        assert not dist.is_initialized(), "a fork would have half of the group"
        ours, theirs = Pipe()
        descriptor, rank = os.memfd_create("slipway-checkpoint"), os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
        try:
            with warnings.catch_warnings():
                # Python counts the threads of OpenBLAS, which stops them for a fork.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                ours.close()
                _serve(theirs, descriptor, rank)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return cls(pid, ours, descriptor)

    def set_up(self, target: Target, group: dist.ProcessGroup, places: list[Place], state: Mapping[str, Tensor]) -> None:
        """Tells the process where it writes to and what lies where. Every rank of the run calls it. Raises CheckpointFailed."""
        planner = DefaultSavePlanner()
        planner.set_up_planner(dict(state), None, dist.get_rank() == 0)
        prefix = [f"checkpoints/{uuid.uuid4().hex}"]
        dist.broadcast_object_list(prefix, src=0, group=group)
        meeting = _Meeting(prefix[0], dist.get_rank(), dist.get_world_size())
        complaint = self.ask(_Setup(target, meeting, places, planner.create_local_plan()))
        if complaint is not None:
            raise CheckpointFailed(f"the process that writes checkpoints could not begin: {complaint}")

    def ask(self, order: Any) -> str | None:
        """Sends an order and waits until it is carried out: None, or what went wrong. Raises CheckpointFailed when the process ends."""
        try:
            self._pipe.send(order)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._reap(0)
            self.require_alive()
            raise

    def require_alive(self) -> None:
        """Raises CheckpointFailed when the process has ended."""
        code = self._reap(os.WNOHANG)
        if code is None:
            return
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        why = "; the host may have run out of memory" if code == -signal.SIGKILL else ""
        raise CheckpointFailed(f"the process that writes the checkpoints of rank {dist.get_rank()} has ended {how}{why}")

    def _reap(self, options: int) -> int | None:
        with self._reaping:
            if self._ended is None:
                pid, status = os.waitpid(self.pid, options)
                self._ended = os.waitstatus_to_exitcode(status) if pid else None
            return self._ended

    def close(self) -> None:
        """Ends the process, also in the middle of a save."""
        if self._reap(os.WNOHANG) is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)
        self._pipe.close()
        os.close(self.descriptor)
