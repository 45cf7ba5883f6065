"""What a driver of a container takes over from the one before it, which a signal has ended."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any, Dict, NamedTuple, Optional


class DriverStart(NamedTuple):
    """One start of the driver. `number`: 0 for the first in its container; `started_at`: when the container started; `kept`: the anonymous
    file of `Decisions`."""

    number: int = 0
    started_at: float = time.time()
    kept: Optional[int] = None


class Decisions:
    """What the deciding host has decided, for the next driver of the host. `facts` is empty before the first decision."""

    def __init__(self, file: Optional[int] = None) -> None:
        self._file = file
        self.facts: Dict[str, Any] = {}
        if file is not None:
            with suppress(ValueError):
                # What follows is the end of a longer text that a killed driver had no time to cut off.
                self.facts = dict(json.JSONDecoder().raw_decode(os.pread(file, os.fstat(file).st_size, 0).decode())[0])

    def keep(self, **facts: Any) -> None:
        """Adds facts, and writes all of them."""
        self.facts.update(facts)
        if self._file is not None:
            data = json.dumps(self.facts).encode()
            with suppress(OSError):
                os.ftruncate(self._file, os.pwrite(self._file, data, 0))
