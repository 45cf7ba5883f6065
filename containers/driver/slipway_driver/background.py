"""Work beside the training, in threads that survive every error."""

from __future__ import annotations

import threading
from typing import Callable


class Repeated:
    """Calls `work` at once and then every `seconds` from a daemon thread, until it returns True or `stop` is called. Of several errors in a
    row, the first one is logged, after `trouble`."""

    def __init__(self, seconds: float, trouble: str, log: Callable[[str], None]) -> None:
        self._seconds, self._trouble, self._log = seconds, trouble, log
        self._stopped, self._awake = threading.Event(), threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def work(self) -> bool:
        """Does the work once. Returns whether there is nothing left to do."""
        raise NotImplementedError

    def check(self) -> bool:
        """Does the work once, without raising its errors. Returns whether there is nothing left to do."""
        try:
            done = self.work()
            self._complained = False
            return done
        except Exception as error:  # The thread must survive any error and try again.
            if not self._complained:
                self._complained = True
                self._log("%s: %s" % (self._trouble, error))
            return False

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def soon(self) -> None:
        """Does the work now instead of at the end of the interval."""
        self._awake.set()

    def stop(self) -> None:
        """Stops the thread without waiting for it."""
        self._stopped.set()
        self._awake.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._awake.clear()
            if self.check() or self._stopped.is_set():
                return
            self._awake.wait(self._seconds)
