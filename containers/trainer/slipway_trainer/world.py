"""The process groups of a run, and communication between its ranks."""

import os
import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from slipway_trainer.checkpoint.process import SaverProcess
from slipway_trainer.host_groups import host_group
from slipway_trainer.phase_seconds import PHASE_SECONDS
from slipway_trainer.progress import emit
from slipway_trainer.timeouts import CollectiveTimeouts

# Limit of the host-side groups: they may wait for slow storage.
SIDE_TIMEOUT = timedelta(minutes=45)
# Time for the release of communicators, which may hang after the work is done. The process exits next.
CLOSE_SECONDS = 60.0


class World:
    """The ranks, this rank's device, and two host-side process groups in addition to the training group."""

    def __init__(self, collectives: str, timeout_seconds: float, steady_seconds: float = 0.0, saver: SaverProcess | None = None) -> None:
        #: The current phase without steps; None between phases.
        self.phase: str | None = None
        self.rank = int(os.environ.get("RANK", "0"))
        self._emit_phase("rendezvous", begin=True)
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
        #: Key-value store of all ranks; it works even if the network of the collectives fails.
        self.store = dist.PrefixStore("slipway", dist.distributed_c10d._get_default_store())
        # The training thread and the thread of the saver need separate groups.
        self.control, self.saving = host_group(SIDE_TIMEOUT), host_group(SIDE_TIMEOUT)
        #: The process that writes this rank's checkpoints; it was started before the process group.
        self.saver = saver
        self.timeouts = CollectiveTimeouts(timeout_seconds, steady_seconds, {self.control: SIDE_TIMEOUT.total_seconds(), self.saving: None})
        self._emit_phase("rendezvous", begin=False)

    @property
    def hosts(self) -> int:
        """Number of training hosts, from the number of ranks per host."""
        return max(1, self.ranks // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))

    @property
    def device_name(self) -> str:
        """The GPU's name in CUDA; `cpu` without a GPU."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    def from_first(self, value: Any) -> Any:
        """The value of rank 0, on all ranks."""
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.control)
        return box[0]

    def mean(self, value: torch.Tensor) -> float:
        """The mean of a scalar over all ranks."""
        total = value.detach().float().clone()
        dist.all_reduce(total)
        return float(total) / self.ranks

    def announce(self, phase: str, begin: bool) -> None:
        """Tells the driver's watchdog that a phase without steps begins or ends."""
        if begin:
            self.timeouts.relax()
        self._emit_phase(phase, begin)

    def end(self, phase: str, then: str | None = None) -> None:
        """Ends a phase if it is the current one, and begins the next."""
        if self.phase == phase:
            self.announce(phase, begin=False)
            if then is not None:
                self.announce(then, begin=True)

    def _emit_phase(self, phase: str, begin: bool) -> None:
        self.phase = phase if begin else None
        if self.rank == 0:
            emit("phase", name=phase, state="begin" if begin else "end", budgetSeconds=PHASE_SECONDS.get(phase) if begin else None)

    def close(self) -> None:
        """Destroys the process group, for which it waits a limited time."""
        ending = threading.Thread(target=dist.destroy_process_group, daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)
        if ending.is_alive():
            print(f"the communicators of rank {self.rank} were not released within {CLOSE_SECONDS:.0f} s; the process ends", flush=True)
