"""Timeouts of collectives: long during slow phases, short during regular steps.

A hang costs the whole cluster until its timeout. Compilation, first steps, loading, evaluation and saves need minutes; regular steps do
not. NCCL and gloo use the timeout that is set when an operation is enqueued, so it can change between operations.
"""

from collections.abc import Mapping
from datetime import timedelta

from torch.distributed import ProcessGroup, distributed_c10d

#: The first steps after a start compile, allocate and open connections.
WARM_UP_STEPS = 3
#: The short timeout is at least this multiple of the slowest recent step.
STEPS_OF_PATIENCE = 5.0
#: A step that takes so many times as long as the slowest recent one, and at least so many seconds, is stalled. Links that flap are back
#: within seconds (MegaScale, arXiv 2402.15627, section 6.3), and a restart in place takes about a minute.
STALLED_STEPS, MIN_STALLED_SECONDS = 3.0, 30.0
#: A step counts as stalled at the latest after this share of the timeout; the rest is reserved for saving the state before it.
STALLED_SHARE = 0.5
#: Decay per step of the slowest recent step time.
FORGETTING = 0.9
#: Smaller relative changes are not applied.
MIN_CHANGE = 0.1


def _set_timeout(group: ProcessGroup, seconds: float) -> None:
    # Public since PyTorch 2.15; the same function had an underscore before.
    setter = getattr(distributed_c10d, "set_timeout", None) or distributed_c10d._set_pg_timeout
    setter(timedelta(seconds=seconds), group)


class CollectiveTimeouts:
    """Timeouts of all process groups of this rank. `steady_seconds` 0 = always the long timeout.

    `patient`: groups with their own long timeout; None = the timeout of the group is never changed.
    """

    def __init__(self, long_seconds: float, steady_seconds: float, patient: Mapping[ProcessGroup, float | None]) -> None:
        self._long, self._steady, self._patient = long_seconds, steady_seconds, dict(patient)
        self._steps = 0
        self._slowest = 0.0
        self.seconds = long_seconds

    @property
    def stalled_seconds(self) -> float:
        """The time without a completed step after which the current one counts as stalled."""
        at_most = STALLED_SHARE * self.seconds
        return at_most if self.seconds == self._long else min(at_most, max(MIN_STALLED_SECONDS, STALLED_STEPS * self._slowest))

    def relax(self) -> None:
        """Sets the long timeout. All ranks must call it before the first collective of a slow phase."""
        self._apply(self._long)

    def tighten(self, step_seconds: float) -> None:
        """Sets the short timeout after a step that has ended on all ranks."""
        self._steps += 1
        if self._steps <= WARM_UP_STEPS or self._steady <= 0:
            return
        self._slowest = max(step_seconds, FORGETTING * self._slowest)
        self._apply(min(self._long, max(self._steady, STEPS_OF_PATIENCE * self._slowest)))

    def _apply(self, seconds: float) -> None:
        if abs(seconds - self.seconds) <= MIN_CHANGE * self.seconds:
            return
        self.seconds = seconds
        for group in list(distributed_c10d._world.pg_map):
            long = self._patient.get(group, self._long)
            if long is not None:
                _set_timeout(group, long if seconds == self._long else seconds)
