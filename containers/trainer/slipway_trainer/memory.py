"""Decides when the state is copied to memory (`checkpoints.memory`), reports the copies, and continues from them."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from slipway_trainer import progress
from slipway_trainer.checkpoint.interval import History, auto_every_steps
from slipway_trainer.checkpoint.memory_copies import EXCHANGE_TIMEOUT, MemoryCopies, Write
from slipway_trainer.checkpoint.memory_file import HELD, OWN, MemoryFile, slot_bytes
from slipway_trainer.checkpoint.memory_plan import SHARE_OF_FREE, MemoryPlan, Partners
from slipway_trainer.checkpoint.memory_restore import MemoryRestore, Restored, gathered
from slipway_trainer.checkpoint.shared_state import places_of
from slipway_trainer.host_groups import host_group
from slipway_trainer.world import World

#: How often a copy is reported: with a copy after each step, the log would have two lines for each.
REPORT_SECONDS = 60.0
#: Fields of a record that are equal for all copies of an attempt.
IDENTITY = ("runId", "attempt", "configHash", "codeDigest", "worldSize", "layout")


class Memory:
    """The copies of a run on one rank."""

    def __init__(self, copies: MemoryCopies, partners: Partners, world: World, every_steps: int | None, history: History) -> None:
        #: The copies of this rank. It must be told before each update of the state, and closed.
        self.copies = copies
        self._partners, self._world, self._history = partners, world, history
        self._is_auto, self._every_steps = every_steps is None, every_steps or 1
        #: The step of the last copy that rank 0 has asked for.
        self._requested = 0
        #: The step of the last copy that was taken. Requests of steps until then were made before it, and do not know of it.
        self._taken = 0
        #: What writes the next copy as a checkpoint, if that was requested.
        self._write: Write | None = None
        self._step_seconds = 0.0
        self._reported_at: float | None = None

    def requests(self, step: int) -> dict[str, bool]:
        """The requests of this rank with `step`: rank 0 asks for copies, and a rank whose last copy is not complete prevents them."""
        due = self._world.rank == 0 and (self._write is not None or step - self._requested >= self._every_steps)
        if due:
            self._requested = step
        return {"copy": due, "copying": self.copies.busy}

    @staticmethod
    def is_due(requests: frozenset[str]) -> bool:
        """Whether the ranks have agreed on a copy. `requests`: those of all ranks."""
        return "copy" in requests and "copying" not in requests

    def after_step(
        self, requests: frozenset[str], read: int, facts: Mapping[str, Any], step_seconds: float, state: Mapping[str, Tensor] | None = None
    ) -> None:
        """Takes a copy if the ranks have agreed on it. `read`: the newest step that is known to be finite; `requests`: its requests;
        `state`: unless it stays in the tensors that it had before."""
        self._step_seconds = step_seconds
        self.copies.sound_until(read)
        self.collect()
        if self.is_due(requests) and read > self._taken:
            if state is not None:
                self.copies.state = state
            write, self._write = self._write, None
            self.copies.take(facts, write)
            self._taken = int(facts["step"])
            self.copies.sound_until(read)

    def write_next(self, write: Write) -> None:
        """Requests the next copy now, and that `write` is called with it. All ranks must call it after the same step."""
        self._write = write

    def end_write(self) -> None:
        """Takes the request of `write_next` back, or waits until its copy is handed over."""
        self._write = None
        self.copies.end_write()

    @property
    def awaits_copy(self) -> bool:
        """Whether the copy of `write_next` has not been taken."""
        return self._write is not None

    def resume(self, state: Mapping[str, Tensor], identity: Mapping[str, Any], newer_than: int) -> Restored | None:
        """Loads the newest copy that all ranks have into `state`, unless a checkpoint is newer."""
        wanted = {name: identity[name] for name in IDENTITY}
        found = MemoryRestore(self.copies, self._partners, wanted, self._world.control).run(state, newer_than)
        if found is not None:
            self._requested = self._taken = int(found.record["step"])
        return found

    def collect(self) -> None:
        """Reports the copy that has become complete, if there is one. Another can be taken afterwards."""
        saved = self.copies.collect()
        if saved is None:
            return
        if self._is_auto:
            self._every_steps = auto_every_steps(saved.seconds_blocked, self._step_seconds, self._world.hosts, self._history)
        now = time.monotonic()
        if self._world.rank == 0 and (self._reported_at is None or now - self._reported_at >= REPORT_SECONDS):
            self._reported_at = now
            seconds, blocked = round(saved.seconds, 4), round(saved.seconds_blocked, 4)
            every = {"everySteps": self._every_steps}
            progress.emit(
                "memory-save", step=saved.step, seconds=seconds, blockedSeconds=blocked, bytes=saved.bytes, copies=saved.copies, **every
            )


def open_memory(plan: MemoryPlan | None, world: World, replicate: int, state: Mapping[str, Tensor], history: History) -> Memory | None:
    """The copies of this run, in memory that is allocated now; None without a plan, or if a host has too little memory. All ranks must
    call it."""
    if plan is None or world.local_rank >= len(plan.files):
        return None
    per_host = world.ranks // world.hosts
    partners = Partners(world.ranks, per_host, replicate, plan.copies)
    slots = len(OWN) + (len(HELD) if partners.are_sent else 0)
    size = max(gathered(slot_bytes(places_of(state)), world.control))
    file, complaint = _opened(plan.files[world.local_rank], size, slots, per_host)
    complaints = [one for one in gathered(complaint, world.control) if one]
    if complaints and world.rank == 0:
        print(f"the state is not kept in memory: {complaints[0]}; use more instances, or a type with more memory", flush=True)
    if complaints or file is None:
        return None
    group = host_group(EXCHANGE_TIMEOUT) if partners.are_sent else None
    copies = MemoryCopies(file, state, partners, group)
    if world.device.type == "cuda":
        copies.pin()
    return Memory(copies, partners, world, plan.every_steps, history)


def _opened(path: str, size: int, slots: int, per_host: int) -> tuple[MemoryFile | None, str]:
    """The memory behind a path, or why it cannot be used."""
    needed, host = MemoryFile.bytes_of(size, slots), os.environ.get("SM_CURRENT_HOST", "this host")
    try:
        available = SHARE_OF_FREE * free_bytes()
        if os.stat(path).st_size != needed and needed * per_host > available:
            return None, f"{host} must have {needed * per_host / 2**30:.1f} GiB for it, got {available / 2**30:.1f} GiB"
        return MemoryFile(path, size, slots), ""
    except OSError as error:
        return None, f"{host}: {error}"


def free_bytes(proc: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that is available on this host, and in the container if it has a limit."""
    found = next(int(line.split()[1]) * 1024 for line in proc.read_text().splitlines() if line.startswith("MemAvailable:"))
    try:
        limit, used = (group / "memory.max").read_text().strip(), int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return found
    return found if limit == "max" else min(found, int(limit) - used)
