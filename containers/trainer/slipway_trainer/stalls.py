"""Saves the state of the last completed step when the following step does not complete, and then reports the stall.

After a network failure or a hang in a collective, every rank still has its part of the model, so the steps since the newest checkpoint need
not be lost. While the training thread waits in a collective, another thread of every rank saves that state over the host-side process group
of saves, before the collective times out and ends the process. If a rank is frozen or dead, nothing is saved, and the run resumes from the
newest copy in memory or checkpoint.

Once a restart would repeat no step, because the state is saved or in memory, waiting for the timeout only adds to the time lost: rank 0
reports the stall, and the driver restarts the ranks in place. The same applies to a frozen rank if there are copies in memory. A rank
that waits for data or a tracker, writes a trace or compiles, prevents this. The repeated step has the long timeout, so a slow step does not
end the run.

The step of the state is known only on the device: the host launches a step before the previous one has completed, and when a collective
hangs, later updates wait on the GPU. The state is that of the last completed update until the next one starts; both are CUDA events in the
stream of the updates. Ranks at different steps
request different saves, so none is written. If the collective completes, an update that was launched after it may start while the state is
copied. Therefore every rank checks again after copying, and the checkpoint is written only if the state has changed on no rank. This
ensures that a checkpoint never mixes two steps. If the host itself runs the update (on CPUs), it waits for the lock.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from slipway_trainer import progress
from slipway_trainer.world import World

#: Maximum number of concurrent updates, plus the one before them.
REMEMBERED = 3


def _marked(device: torch.device) -> Any:
    """A point in the order of work: its `query` says whether the preceding work is complete, as on a CPU when a call returns."""
    if device.type != "cuda":
        return SimpleNamespace(query=lambda: True)
    event = torch.cuda.Event()
    event.record()
    return event


@dataclass
class _Update:
    facts: Mapping[str, Any]
    begun: Any
    ended: Any = None


class Standing:
    """The last updates of one rank's state. `mark`: records a mark in the stream of the updates, such as torch.cuda.Event."""

    def __init__(self, device: torch.device, mark: Callable[[], Any] | None = None) -> None:
        self._mark = mark or partial(_marked, device)
        # Replaced instead of mutated, because another thread reads it.
        self._updates: tuple[_Update, ...] = ()

    @contextmanager
    def update(self, facts: Mapping[str, Any]) -> Iterator[None]:
        """Context for the launch of an update, after which `facts` describe the state."""
        update = _Update(facts, self._mark())
        self._updates = (*self._updates[1 - REMEMBERED :], update)
        yield
        update.ended = self._mark()

    def newest(self) -> Mapping[str, Any] | None:
        """The facts of the current state; None before the first update and during an update."""
        facts = None
        for update in self._updates:
            if not update.begun.query():
                break
            if update.ended is None or not update.ended.query():
                return None
            facts = update.facts
        return facts

    def still(self, facts: Mapping[str, Any]) -> bool:
        """Whether no update has started since `newest` returned these facts, so that a copy made in between belongs to one step."""
        return self.newest() is facts


if TYPE_CHECKING:
    from slipway_trainer.saves import Saves

#: Time within which all ranks must request the same save. They detect a stall within a second of each other.
VOTE_SECONDS = 10.0
POLL_SECONDS = 0.25
#: Verdicts of a ballot.
YES, NO, SILENT = "yes", "no", "silent"

#: Files of PyTorch and Triton that are on the stack of a thread only while code is compiled or tuned.
_COMPILERS = (
    "torch/_dynamo/convert_frame.py",
    "torch/_inductor/graph.py",
    "torch/_inductor/codecache.py",
    "torch/_inductor/async_compile.py",
    "triton/compiler/compiler.py",
    "triton/runtime/autotuner.py",
)


def compiling() -> bool:
    """Whether a thread of this process compiles: a step whose shapes are new may take minutes on one rank, and the others wait for it."""
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_filename.endswith(_COMPILERS):
                return True
            frame = frame.f_back  # type: ignore[assignment]
    return False


class Ballot:
    """A vote of all ranks. All ranks get the same result, even if one votes while another times out."""

    def __init__(self, store: dist.Store, rank: int, ranks: int, seconds: float = VOTE_SECONDS) -> None:
        self._store, self._rank, self._ranks, self._seconds = store, rank, ranks, seconds

    def unanimous(self, about: str, agrees: bool = True) -> bool:
        """Whether all ranks agree about `about`, which must be unique. Waits for the others unless this rank disagrees."""
        return self.verdict(about, agrees) == YES

    def verdict(self, about: str, agrees: bool = True) -> str:
        """Like `unanimous`, but YES, NO (a rank disagrees) or SILENT (a rank has not voted in time)."""
        verdict = f"{about}/verdict"
        self._store.set(f"{about}/{self._rank}", "")
        if not agrees:
            return self._decide(verdict, NO)
        if self._store.add(f"{about}/votes", 1) == self._ranks:
            return self._decide(verdict, YES)
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline:
            if self._store.check([verdict]):
                break
            time.sleep(POLL_SECONDS)
        return self._decide(verdict, SILENT)

    def silent(self, *abouts: str) -> list[int]:
        """The ranks that have voted about none of these."""
        return [rank for rank in range(self._ranks) if not any(self._store.check([f"{about}/{rank}"]) for about in abouts)]

    def _decide(self, verdict: str, word: str) -> str:
        """Writes the verdict unless another rank has written one, which then applies."""
        return self._store.compare_set(verdict, "", word).decode()


class StallWatch:
    """A thread that monitors the steps of this rank. `patience`: returns the seconds without a completed step after which it acts.

    `may_end`: returns whether this rank agrees that the ranks end; `give_up`: called with the step of the state when all have agreed, and
    with the ranks that are silent.
    """

    #: Whether this rank launches a step or waits for its result, and not for data, a tracker or a file.
    computes = False

    def __init__(
        self,
        saves: "Saves",
        ballot: Ballot,
        patience: Callable[[], float],
        may_end: Callable[[], bool],
        give_up: Callable[[int, Sequence[int]], None],
        poll_seconds: float = 1.0,
    ) -> None:
        self._saves, self._ballot, self._patience, self._poll_seconds = saves, ballot, patience, poll_seconds
        self._may_end, self._give_up = may_end, give_up
        #: Held while the state changes, while saves start, and while the state is copied during a stall.
        self.still = threading.Lock()
        self._ended_at = 0.0
        #: The step about whose state the ranks have voted, and the one after which they have voted to end.
        self._tried: int | None = None
        self._over: int | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stalls", daemon=True)

    def ended(self) -> None:
        """Called after each step. The first call starts the thread."""
        self.go_on()
        # A thread that has ended after an error is not started again.
        if self._thread.ident is None and not self._closed.is_set():
            self._thread.start()

    def go_on(self) -> None:
        """Resets the timer after a save or an evaluation, which do not count as a stall."""
        self._ended_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since the last step, save or evaluation."""
        return time.monotonic() - self._ended_at

    def close(self) -> None:
        """Called after the last step."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._poll_seconds):
            try:
                self._check()
            except Exception as error:  # A failure of this optional save must not end the run.
                print(f"the state before the stalled step could not be saved: {error}", flush=True)
                return

    def _check(self) -> None:
        if self.seconds <= self._patience():
            return
        with self.still:
            # The step may have completed while this thread waited for the lock.
            if self._closed.is_set() or self.seconds <= self._patience():
                return
            step = self._saves.standing_step()
            if step is None or step == self._tried:
                self._saves.collect()
            else:
                self._tried = step
                self._keep(step)
            if step is not None and step != self._over and self._saves.kept_step() == step:
                self._over = step
                self._end(step)

    def _keep(self, step: int) -> None:
        """Saves the state of `step` unless a rank is silent or every rank has a copy of it."""
        verdict = self._ballot.verdict(f"stall/{step}")
        if verdict == SILENT and self._saves.copied_step() is not None and self._may_end():
            # A rank is frozen, has ended, or has completed another step.
            self._over = step
            self._give_up(step, self._ballot.silent(*(f"stall/{other}" for other in (step - 1, step, step + 1))))
        if verdict != YES or self._ballot.unanimous(f"stall/{step}/kept", self._saves.kept_step() == step):
            return
        if self._saves.begin_stalled(step, lambda sound: self._ballot.unanimous(f"stall/{step}/copied", sound)):
            print(f"step {step + 1} is stalled: saving the state after step {step}", flush=True)

    def _end(self, step: int) -> None:
        if self._ballot.unanimous(f"stall/{step}/over", self._may_end()):
            self._give_up(step, ())


def watch_steps(world: World, saves: "Saves") -> StallWatch:
    """The watch of a rank of the trainer."""

    def patience() -> float:
        return world.timeouts.stalled_seconds if world.phase in (None, "eval") else math.inf

    def may_end() -> bool:
        # An evaluation has no steps to continue from.
        return world.phase is None and watch.computes and not compiling()

    def give_up(step: int, silent: Sequence[int]) -> None:
        if world.rank == 0:
            progress.emit("stall", step=step, seconds=round(watch.seconds), **({"silent": list(silent)} if silent else {}))

    watch = StallWatch(saves, Ballot(world.store, world.rank, world.ranks), patience, may_end, give_up)
    return watch
