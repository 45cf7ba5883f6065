"""The process group of a run, and small agreements between its ranks."""

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from slipway_trainer.checkpoint.process import SaverProcess
from slipway_trainer.progress import say
from slipway_trainer.timeouts import CollectiveTimeouts

#: Until a phase that the trainer announces may be silent.
PHASE_SECONDS = {"load": 1800, "save": 1800, "eval": 1800}
# Coordination of checkpoints may wait for slow storage, not for a hung GPU.
SIDE_TIMEOUT = timedelta(minutes=45)


class World:
    """Ranks, the device of this one, and two host-side groups beside the training group."""

    def __init__(
        self, collectives: str, timeout_seconds: float, steady_seconds: float = 0.0, saver: SaverProcess | None = None
    ) -> None:
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        on_gpu = torch.cuda.is_available() and collectives != "gloo"
        self.device = torch.device("cuda", self.local_rank) if on_gpu else torch.device("cpu")
        if on_gpu:
            torch.cuda.set_device(self.device)
        if collectives == "smddp":
            # The import registers the backend.
            import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401
        backend = "smddp" if collectives == "smddp" else "nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout_seconds))
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        #: The keys that all ranks share; it outlives a network on which collectives hang.
        self.store = dist.PrefixStore("slipway", dist.distributed_c10d._get_default_store())
        # Decisions of the training thread, and the background thread of the saver: each needs a group of its own.
        self.control = dist.new_group(backend="gloo", timeout=SIDE_TIMEOUT)
        self.saving = dist.new_group(backend="gloo", timeout=SIDE_TIMEOUT)
        #: The process that writes this rank's checkpoints, which was there before the group.
        self.saver = saver
        #: The phase without steps that is going on; None between steps.
        self.phase: str | None = None
        self.timeouts = CollectiveTimeouts(timeout_seconds, steady_seconds, {self.control: SIDE_TIMEOUT.total_seconds(), self.saving: None})

    @property
    def hosts(self) -> int:
        """Hosts that train, by the ranks of each."""
        return max(1, self.ranks // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))

    @property
    def device_name(self) -> str:
        """The GPU's name as CUDA gives it; `cpu` without one."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    def from_first(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.control)
        return box[0]

    def mean(self, value: torch.Tensor) -> float:
        """Mean over all ranks of a scalar."""
        total = value.detach().float().clone()
        dist.all_reduce(total)
        return float(total) / self.ranks

    def announce(self, phase: str, begin: bool) -> None:
        """Tells the watchdog that a phase without steps begins or ends."""
        self.phase = phase if begin else None
        if begin:
            self.timeouts.relax()
        if self.rank == 0:
            say("phase", name=phase, state="begin" if begin else "end", budgetSeconds=PHASE_SECONDS[phase] if begin else None)

    def close(self) -> None:
        """Leaves the process group."""
        dist.destroy_process_group()
