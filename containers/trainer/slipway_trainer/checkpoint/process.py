"""A process for each rank that writes its checkpoints, so that saves do not compete with training for the GIL.

It is forked before the rank uses a GPU, the network or threads, so it needs no second import of PyTorch and no memory except for the data
that it writes. At the first save it receives the locations of the tensors in shared memory (shared_state.py) and the rank's shards as DCP's
save plan, so it needs neither the device nor the mesh of the run. The processes of all ranks form a process group of their own.

PyTorch's own implementation (`async_checkpointer_type=PROCESS`, PyTorch 2.15) is not used: it starts at the first save; it is killed by the
SIGTERM after which the last save must be written; it continues after its rank has ended, in a checkpoint that the next start may be
writing; and it opens shared memory again for each tensor of each save. This process ignores SIGTERM and Ctrl-C, and the kernel ends it with
its rank.
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
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.planner import SavePlan

from slipway_trainer.checkpoint.local_copies import CopyingStore
from slipway_trainer.checkpoint.shared_state import Place, tensors_at
from slipway_trainer.checkpoint.store import Store, open_store
from slipway_trainer.checkpoint.writing import CheckpointWriter, own_part, reason_of
from slipway_trainer.exits import CheckpointFailed
from slipway_trainer.host_groups import connected_when_used

#: prctl(2): the signal that a process receives when its parent dies.
PR_SET_PDEATHSIG = 1
#: Timeout for the creation of the process group, and for its collectives, which wait for the other processes' uploads.
JOIN_TIMEOUT = timedelta(minutes=45)
#: Signals that request a graceful end of the rank, after which its last save is written.
_POLITE = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@dataclass(frozen=True)
class Target:
    """The destination of checkpoints. `copies`: the folder of this host for local copies; empty = none."""

    uri: str
    copies: str
    keep: int

    def open(self) -> Store:
        """Opens the store as the ranks do."""
        store = open_store(self.uri)
        return CopyingStore(store, Path(self.copies)) if self.copies and self.uri.startswith("s3://") else store


@dataclass(frozen=True)
class _Setup:
    """What precedes the first save. `prefix`: of the keys in the TCPStore of the ranks by which the processes meet."""

    target: Target
    prefix: str
    rank: int
    ranks: int
    places: list[Place]
    plan: SavePlan

    def carry_out(self, descriptor: int) -> Callable[[Mapping[str, Any]], None]:
        """Returns what writes a step whose state is in the shared memory, by its facts."""
        if not dist.is_initialized():
            store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
            meeting = dist.PrefixStore(self.prefix, store)
            with connected_when_used():
                dist.init_process_group("gloo", store=meeting, rank=self.rank, world_size=self.ranks, timeout=JOIN_TIMEOUT)
        writer = CheckpointWriter(self.target.open(), self.target.keep, self.plan)
        return partial(writer.write, snapshot=tensors_at(descriptor, self.places))


def _serve(pipe: Connection, descriptor: int, rank: int) -> NoReturn:
    """The main loop of the process: handles a `_Setup`, then the facts of each save. `rank`: the process id of its rank."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != rank:
        os._exit(1)
    gc.freeze()
    write: Callable[[Mapping[str, Any]], None] | None = None
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            if isinstance(order, _Setup):
                write = order.carry_out(descriptor)
            else:
                assert write is not None, "setup must precede a save"
                write(order)
            pipe.send(None)
        except Exception as error:  # The rank decides whether the run ends.
            pipe.send(reason_of(error))


class SaverProcess:
    """The rank's side of the process. `start` must precede any use of CUDA and torch.distributed."""

    def __init__(self, pid: int, pipe: Connection, descriptor: int) -> None:
        #: File descriptor of the shared memory.
        self.descriptor = descriptor
        self.pid = pid
        self._pipe = pipe
        self._ended: int | None = None
        self._reaping = threading.Lock()

    @classmethod
    def start(cls) -> "SaverProcess":
        """Forks the process. Termination signals are blocked during the fork and stay blocked in the child."""
        assert not dist.is_initialized(), "the process must be forked before the process group is created"
        ours, theirs = Pipe()
        descriptor, rank = os.memfd_create("slipway-checkpoint"), os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
        try:
            with warnings.catch_warnings():
                # Python counts the threads of OpenBLAS, although OpenBLAS stops them before a fork.
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
        """Sends the destination and the tensor locations to the process. All ranks of the run must call it. Raises CheckpointFailed."""
        planner = DefaultSavePlanner()
        planner.set_up_planner(dict(state), None, dist.get_rank() == 0)
        prefix = [f"checkpoints/{uuid.uuid4().hex}"]
        dist.broadcast_object_list(prefix, src=0, group=group)
        plan = own_part(planner.create_local_plan(), state)
        complaint = self.ask(_Setup(target, prefix[0], dist.get_rank(), dist.get_world_size(), places, plan))
        if complaint is not None:
            raise CheckpointFailed(
                f"the process that writes checkpoints could not be set up: {complaint}; see the lines above for its error"
            )

    def ask(self, order: Any) -> str | None:
        """Sends a request and waits for its result: None, or the error. Raises CheckpointFailed if the process has ended."""
        try:
            self._pipe.send(order)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._reap(0)
            self.require_alive()
            raise

    def require_alive(self) -> None:
        """Raises CheckpointFailed if the process has ended."""
        code = self._reap(os.WNOHANG)
        if code is None:
            return
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        why = "the host may have run out of memory" if code == -signal.SIGKILL else "see the lines above for its error"
        raise CheckpointFailed(f"the process that writes the checkpoints of rank {dist.get_rank()} has ended {how}; {why}")

    def _reap(self, options: int) -> int | None:
        with self._reaping:
            if self._ended is None:
                pid, status = os.waitpid(self.pid, options)
                self._ended = os.waitstatus_to_exitcode(status) if pid else None
            return self._ended

    def close(self) -> None:
        """Kills the process, even during a save."""
        if self._reap(os.WNOHANG) is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)
        self._pipe.close()
        os.close(self.descriptor)
