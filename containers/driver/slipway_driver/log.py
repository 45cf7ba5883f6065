"""The driver's own lines. Everything goes to stdout, whole lines at a time: threads share it."""

from __future__ import annotations

import sys
import threading

from slipway_driver.hidden import without_hidden

_lock = threading.Lock()


def say(line: str) -> None:
    """A line as it is, secrets masked: the ranks' output and progress lines."""
    line = without_hidden(line)
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def log(line: str) -> None:
    """A line of the driver itself."""
    say("slipway-driver: " + line)
