"""Runs Python's garbage collector at fixed steps. Otherwise each rank would collect at a different time, and all ranks would wait for
it."""

import gc

#: Steps between collections. A generation-1 collection takes milliseconds, and few reference cycles with tensors accumulate in between.
STEPS_BETWEEN = 50


class ScheduledCollection:
    """Collects after the same steps on every rank and disables automatic collection. `close` enables it again."""

    def __init__(self, steps_between: int = STEPS_BETWEEN) -> None:
        self._steps_between = steps_between
        # Existing objects (modules, the model) are permanent: freezing excludes them from later collections.
        gc.collect()
        gc.freeze()
        gc.disable()

    def after_step(self, step: int) -> None:
        """Collects if `step` is due. All ranks call it with the same steps."""
        if step % self._steps_between == 0:
            gc.collect(1)

    def close(self) -> None:
        """Enables automatic collection again."""
        gc.enable()
        gc.unfreeze()
