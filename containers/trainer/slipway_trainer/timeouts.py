"""How long a collective may take: long while something slow may be going on, short between steps that follow each other.

A hang costs the whole cluster until its timeout. Compilation, first steps, loading, evaluation and saves need minutes; steady steps do
not. NCCL and gloo take the timeout that holds when an operation is queued, so that it may change between two of them.
"""

from collections.abc import Mapping
from datetime import timedelta

from torch.distributed import ProcessGroup, distributed_c10d

#: The first steps after a start compile, allocate and open connections.
WARM_UP_STEPS = 3
#: A steady collective waits at least for this many of the slowest recent steps.
STEPS_OF_PATIENCE = 5.0
#: How fast one slow step is forgotten.
FORGETTING = 0.9
#: Smaller changes are not worth the calls.
LEAST_CHANGE = 0.1


def _set_timeout(group: ProcessGroup, seconds: float) -> None:
    # Public since PyTorch 2.15; the same function had an underscore before.
    setter = getattr(distributed_c10d, "set_timeout", None) or distributed_c10d._set_pg_timeout
    setter(timedelta(seconds=seconds), group)


class CollectiveTimeouts:
    """Timeouts of every process group of this rank. `steady_seconds` 0 = always the long ones.

    `patient`: groups with a long timeout of their own; None leaves a group alone altogether.
    """

    def __init__(self, long_seconds: float, steady_seconds: float, patient: Mapping[ProcessGroup, float | None]) -> None:
        self._long, self._steady, self._patient = long_seconds, steady_seconds, dict(patient)
        self._steps = 0
        self._slowest = 0.0
        self.seconds = long_seconds

    def relax(self) -> None:
        """Something slow comes next: on every rank, before its first collective."""
        self._apply(self._long)

    def tighten(self, step_seconds: float) -> None:
        """A step has ended on every rank, and the next one follows at once."""
        self._steps += 1
        if self._steps <= WARM_UP_STEPS or self._steady <= 0:
            return
        self._slowest = max(step_seconds, FORGETTING * self._slowest)
        self._apply(min(self._long, max(self._steady, STEPS_OF_PATIENCE * self._slowest)))

    def _apply(self, seconds: float) -> None:
        if abs(seconds - self.seconds) <= LEAST_CHANGE * self.seconds:
            return
        self.seconds = seconds
        for group in list(distributed_c10d._world.pg_map):
            long = self._patient.get(group, self._long)
            if long is not None:
                _set_timeout(group, long if seconds == self._long else seconds)
