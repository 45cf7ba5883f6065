"""Decides when checkpoints are written and what they contain, and resumes from a checkpoint."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor

from slipway_trainer import progress
from slipway_trainer.backend import Backend
from slipway_trainer.checkpoint.committed import forget_newer, saved_now, step_of
from slipway_trainer.checkpoint.interval import SHORTEST_MINUTES, History, auto_interval_minutes
from slipway_trainer.checkpoint.process import Target
from slipway_trainer.checkpoint.saver import CheckpointSaver, LibrarySaver, Saved
from slipway_trainer.checkpoint.store import Store
from slipway_trainer.load import load_newest, random_state
from slipway_trainer.memory import Memory, open_memory
from slipway_trainer.settings import RunSettings
from slipway_trainer.stalls import Standing
from slipway_trainer.world import World

#: Steps within which a copy is taken that was requested to be written. Copies end when one cannot be sent.
COPY_STEPS = 10


class Saves:
    """The checkpoints of a run on one rank. Does nothing without a checkpoint URI."""

    def __init__(self, settings: RunSettings, world: World, backend: Backend, bad: Tensor) -> None:
        """`bad`: a device tensor that is not zero if a step was not finite, after which steps no longer change the state."""
        self._settings, self._world, self._backend, self._bad = settings, world, backend, bad
        checkpoints = settings.checkpoints
        target = Target(checkpoints.uri, checkpoints.local_copies, checkpoints.keep)
        self._store: Store | None = target.open() if target.uri else None
        self._saver: CheckpointSaver | LibrarySaver | None = None
        if self._store is not None and backend.library_checkpoints is not None:
            self._saver = LibrarySaver(self._store, target.keep, world.saving, backend.library_checkpoints)
        elif self._store is not None:
            assert world.saver is not None, "the process that writes checkpoints is started with the rank"
            self._saver = CheckpointSaver(target, world.saving, world.device.type == "cuda", world.saver)
        self._interval_minutes = checkpoints.interval_minutes or SHORTEST_MINUTES
        self._began_at = time.monotonic()
        self._last: Saved | None = None
        self._loaded_step: int | None = None
        self._blocked_seconds = 0.0
        #: The step of the newest save that was started.
        self._begun_step: int | None = None
        #: For a save during a stall: the tensors of the state, and the step to which they belong.
        self._live: dict[str, Tensor] | None = None
        self._standing = Standing(world.device)
        self._memory: Memory | None = None
        #: Step after which the next copy in memory was requested as a checkpoint.
        self._requested_step = 0

    def requests(self, step: int) -> dict[str, bool]:
        """The requests of this rank with `step` for copies in memory."""
        return self._memory.requests(step) if self._memory is not None else {}

    def after_step(self, requests: frozenset[str], read: int, facts: Mapping[str, Any], step_seconds: float) -> None:
        """Takes a copy of the state in memory if the ranks have agreed on it. `read`: the newest step that is known to be finite."""
        if self._memory is not None:
            self._memory.after_step(requests, read, self._run_facts() | facts, step_seconds)

    @property
    def newest_step(self) -> int | None:
        """The step of the newest checkpoint in the run's own store: the last completed save, or the loaded checkpoint."""
        return self._last.step if self._last else self._loaded_step

    @property
    def seconds(self) -> float:
        """Total duration of the last save."""
        return self._last.seconds_total if self._last else 0.0

    def take_blocked_seconds(self) -> float:
        """Time for which saves have blocked training since the last call."""
        blocked, self._blocked_seconds = self._blocked_seconds, 0.0
        return blocked

    def due_at(self, step: int) -> bool:
        """Whether the run file requests a save after this step; equal on all ranks."""
        every = self._settings.arguments.save_every_steps
        return every > 0 and step % every == 0

    @property
    def due(self) -> bool:
        """Whether the save interval has elapsed, by this rank's clock."""
        if self._settings.arguments.save_every_steps or (self._memory is not None and (self._memory.awaits_copy or self._is_busy)):
            return False
        return time.monotonic() - self._began_at >= 60.0 * self._interval_minutes

    @property
    def _is_busy(self) -> bool:
        """Whether a checkpoint is being written; the copy of the next one would wait for it."""
        return isinstance(self._saver, CheckpointSaver) and self._saver.is_busy

    def save_next_copy(self, step: int) -> bool:
        """Requests that the next copy in memory, after `step`, becomes a checkpoint: training does not wait for it. Returns False, equal on
        all ranks, if there are no copies."""
        if self._memory is None or not isinstance(self._saver, CheckpointSaver):
            return False
        self._memory.write_next(self._write_copy)
        self._began_at, self._requested_step = time.monotonic(), step
        return True

    def lacks_copy(self, step: int) -> bool:
        """Whether that copy was not taken in time, so that the state has to be saved after `step`. Equal on all ranks."""
        return self._memory is not None and self._memory.awaits_copy and step - self._requested_step >= COPY_STEPS

    def _write_copy(self, shards: Mapping[str, Tensor], facts: Mapping[str, Any], blocked: float) -> None:
        """Called by the thread that completes copies. `facts`: of the run and of the step."""
        assert isinstance(self._saver, CheckpointSaver)
        if self._begun_step == facts["step"]:
            return
        self._begun_step = facts["step"]
        self._saver.write_copy(facts["step"], {**shards, **random_state(self._world)}, saved_now() | facts, blocked)

    def save(self, facts: Mapping[str, Any], wait: bool) -> None:
        """Starts a checkpoint; with `wait`, also waits until it is complete."""
        if self._saver is None:
            return
        if self._memory is not None:
            self._memory.end_write()
        # The wait for the previous save may differ between ranks.
        self._world.timeouts.relax()
        # All ranks may be writing a copy of this step already.
        if self._begun_step != facts["step"]:
            state = {} if self._backend.library_checkpoints else self._backend.state() | random_state(self._world)
            self._report(self._saver.start(facts["step"], state, self._run_facts() | saved_now() | facts))
            self._began_at, self._begun_step = time.monotonic(), facts["step"]
        if wait:
            self._world.announce("save", begin=True)
            self._report(self._saver.wait())
            self._world.announce("save", begin=False)

    def updating(self, facts: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Context for the launch of an optimizer step, after which `facts` describe the state."""
        if self._memory is not None:
            self._memory.copies.before_update()
        return self._standing.update(facts) if self.watches else nullcontext()

    @property
    def watches(self) -> bool:
        """Whether `begin_stalled` can save the state during a stalled step."""
        return isinstance(self._saver, CheckpointSaver) and self._backend.state_stays

    def standing_step(self) -> int | None:
        """The step of the current state; None if it is unknown."""
        return (self._standing.newest() or {}).get("step")

    def copied_step(self) -> int | None:
        """The step of the newest complete copy in memory of this start; None without one."""
        return self._memory.copies.kept_step if self._memory else None

    def kept_step(self) -> int | None:
        """The same, or that of the newest complete checkpoint of this start if it is newer."""
        return max((self._last.step if self._last else 0, self.copied_step() or 0)) or None

    def begin_stalled(self, step: int, agreed: Callable[[bool], bool]) -> bool:
        """Starts to save the state of `step` from a thread other than training. Returns False, without writing anything, if its save has
        begun already, or unless all ranks have a copy (`agreed` is called with this rank's result). The GPU may wait in a collective
        indefinitely, so the copy uses a separate stream.
        """
        assert isinstance(self._saver, CheckpointSaver) and self._live is not None, "a save during a stall needs a state at fixed addresses"
        if self._memory is not None:
            self._memory.copies.await_write()
        if step == self._begun_step:
            return False
        facts = self._standing.newest()
        if facts is None or facts["step"] != step:
            return agreed(False)
        self._report(self._saver.wait())
        with self._saver.beside():
            staged = self._saver.stage(self._live | random_state(self._world))
            # A step that was not finite has not changed the state, so the state does not belong to that step.
            sound = not float(self._bad)
        if not agreed(sound and self._standing.still(facts)):
            return False
        self._saver.write(step, staged, self._run_facts() | saved_now() | facts)
        self._began_at, self._begun_step = time.monotonic(), step
        return True

    def collect(self) -> None:
        """Reports a completed save, if any. Raises its error."""
        if self._saver is not None:
            self._report(self._saver.finished())

    def resume(self) -> Mapping[str, Any] | None:
        """Loads the newest state, from memory if this is a restart in place, and otherwise the newest complete checkpoint. Returns its
        record; None if there is none. Raises CheckpointFailed."""
        self._world.announce("load", begin=True)
        rollback = self._settings.checkpoints.rollback
        if rollback is not None and self._store is not None and self._world.rank == 0:
            forget_newer(self._store, rollback)
        record = self._from_memory()
        if record is None:
            record, is_own = load_newest(self._settings, self._world, self._backend, self._store)
            self._loaded_step = int(record["step"]) if record is not None and is_own else None
        if self.watches:
            # Allocates and pins the host memory for saves before training starts, unless each save gathers the state.
            assert isinstance(self._saver, CheckpointSaver)
            self._live = self._backend.state()
            self._saver.prepare(self._live | random_state(self._world))
        self._world.announce("load", begin=False)
        return record

    def _from_memory(self) -> Mapping[str, Any] | None:
        settings = self._settings.checkpoints
        if not self._backend.state_stays:
            return None
        state = self._backend.state()
        self._memory = open_memory(settings.memory, self._world, self._backend.layout.replicate, state, self._history())
        if self._memory is None:
            return None
        named = step_of(settings.resume_from)
        found = self._memory.resume(state, self._run_facts(), 0 if named is None else named)
        if found is not None and self._world.rank == 0:
            progress.emit("resume", step=found.record["step"], source=found.source)
        return found.record if found is not None else None

    def _run_facts(self) -> dict[str, Any]:
        """The fields of COMMITTED.json that are constant for the attempt."""
        settings = self._settings
        return {
            "runId": settings.run_id,
            "attempt": settings.attempt,
            "configHash": settings.config_hash,
            "codeDigest": settings.code_digest,
            "imageUri": settings.image_uri,
            "worldSize": self._world.ranks,
            "layout": self._backend.layout.committed(),
        }

    def _report(self, saved: Saved | None) -> None:
        if saved is None:
            return
        self._last = saved
        self._blocked_seconds += saved.seconds_blocked
        settings = self._settings.checkpoints
        if settings.interval_minutes is None:
            history = self._history() if self._memory is None else self._history().of_jobs(settings.restarts, settings.spares)
            self._interval_minutes = auto_interval_minutes(saved.seconds_blocked, saved.seconds_total, self._world.hosts, history)
        if self._world.rank == 0:
            blocked, total = round(saved.seconds_blocked, 3), round(saved.seconds_total, 3)
            progress.emit("checkpoint", step=saved.step, uri=saved.uri, secondsBlocked=blocked, secondsTotal=total)

    def _history(self) -> History:
        """The run's failures, and its node-days until now."""
        known = self._settings.checkpoints.history
        lived = max(0.0, time.time() - (self._settings.started_at or time.time())) / 86400.0
        return History(known.failures, known.node_days + lived * self._world.hosts)

    def close(self) -> None:
        """Closes the saver without waiting for a save in progress."""
        if self._memory is not None:
            # The exchange of the last copy needs the process group.
            self._memory.copies.close()
        if self._saver is not None:
            self._saver.close()
