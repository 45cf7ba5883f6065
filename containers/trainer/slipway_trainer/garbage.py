"""Python's garbage collector on a schedule: left alone it stops every rank at another moment, and all ranks wait for each of them."""

import gc

#: Steps between collections. A generation-1 collection takes milliseconds; cycles that hold tensors do not pile up until the next.
STEPS_BETWEEN = 50


class ScheduledCollection:
    """Collects after the same steps on every rank, and never in between. `close` gives the collector back."""

    def __init__(self, steps_between: int = STEPS_BETWEEN) -> None:
        self._steps_between = steps_between
        # What has been made by now, modules and the model, stays: later collections need not look at it.
        gc.collect()
        gc.freeze()
        gc.disable()

    def after_step(self, step: int) -> None:
        """Every rank calls it with the same steps."""
        if step % self._steps_between == 0:
            gc.collect(1)

    def close(self) -> None:
        """Gives garbage collection back to Python."""
        gc.enable()
        gc.unfreeze()
