"""A checkpoint of the last finished step when the step after it does not end.

Where a network breaks, or a collective hangs, every rank still has its part of the model: what lies between the newest checkpoint and the
last step need not be done again. While the training thread waits in a collective, another thread of every rank saves that state, over
the host-side group that saves use anyway, so that it is on its way before the collective gives up and ends the process. Where a rank is
frozen or dead nothing is saved, and the newest checkpoint before it counts, as ever.

Which step that state is of, only the device knows: the host launches steps ahead (standing.py). Ranks that stand at different steps ask
for different saves, so none is made. An update that was launched behind the hung collective may still begin while the state is copied, if
the collective comes back: every rank looks again after copying, and only when no rank's state has moved does anybody write. So a
checkpoint is never made of two steps' states. Where the host itself launches the update (on CPUs), it waits for the lock.
"""

import threading
import time
from collections.abc import Callable
from typing import Protocol

import torch.distributed as dist

#: The share of the time after which collectives give up; the rest is left for the save itself.
PATIENCE = 0.5
#: Until every rank must have asked for the same save. They see the stall within a second of each other.
VOTE_SECONDS = 10.0
POLL_SECONDS = 0.25


class Ballot:
    """Whether all ranks want the same thing. Every rank gets the same answer, also when one asks as another gives up."""

    def __init__(self, store: dist.Store, ranks: int, seconds: float = VOTE_SECONDS) -> None:
        self._store, self._ranks, self._seconds = store, ranks, seconds

    def unanimous(self, about: str, agrees: bool = True) -> bool:
        """Whether all agree. Asks once, and waits for the others unless this rank does not agree. Not twice about the same."""
        verdict = f"{about}/verdict"
        if not agrees:
            return self._decide(verdict, "no")
        if self._store.add(f"{about}/votes", 1) == self._ranks:
            return self._decide(verdict, "yes")
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline:
            if self._store.check([verdict]):
                break
            time.sleep(POLL_SECONDS)
        return self._decide(verdict, "no")

    def _decide(self, verdict: str, word: str) -> bool:
        """Writes the verdict unless another rank has written one, which then applies."""
        return self._store.compare_set(verdict, "", word) == b"yes"


class Saving(Protocol):
    """What a watch needs of the run's saves."""

    def standing_step(self) -> int | None:
        """The step of the state that a save could begin with now; None when there is none that is not saved already."""

    def begin_stalled(self, step: int, agreed: Callable[[bool], bool]) -> bool:
        """Begins to save the state of `step` from a thread beside training. `agreed` is told whether the copy is sound, and answers whether
        all ranks' copies are; else nothing is written, and the answer is False."""

    def collect(self) -> None:
        """Reports a save that has ended."""


class StallWatch:
    """One thread that watches the steps of this rank. `patience`: seconds without the end of a step, asked again each time."""

    def __init__(self, saves: Saving, ballot: Ballot, patience: Callable[[], float], poll_seconds: float = 1.0) -> None:
        self._saves, self._ballot, self._patience, self._poll_seconds = saves, ballot, patience, poll_seconds
        #: Held while the state changes, while saves begin, and while it is copied beside training.
        self.still = threading.Lock()
        self._ended_at = 0.0
        self._tried: int | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stalls", daemon=True)

    def ended(self) -> None:
        """A step has ended, and training goes on. The first one begins the watch."""
        self.go_on()
        # A thread that has given up is never started again.
        if self._thread.ident is None and not self._closed.is_set():
            self._thread.start()

    def go_on(self) -> None:
        """Steps may follow again: what came between them, a save or an evaluation, does not count as standing still."""
        self._ended_at = time.monotonic()

    def close(self) -> None:
        """There is no further step."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._poll_seconds):
            try:
                self._look()
            except Exception as error:  # A failure of this optional save must not end the run.
                print(f"the step that stood still could not be saved: {error}", flush=True)
                return

    def _look(self) -> None:
        if time.monotonic() - self._ended_at <= self._patience():
            return
        with self.still:
            # It may have gone on while this thread waited for the lock.
            if self._closed.is_set() or time.monotonic() - self._ended_at <= self._patience():
                return
            step = self._saves.standing_step()
            if step is None or step == self._tried:
                self._saves.collect()
            else:
                self._tried = step
                self._save(step)

    def _save(self, step: int) -> None:
        if not self._ballot.unanimous(f"stall/{step}"):
            return
        if self._saves.begin_stalled(step, lambda sound: self._ballot.unanimous(f"stall/{step}/copied", sound)):
            print(f"step {step + 1} stands still: the state after step {step} is saved", flush=True)
