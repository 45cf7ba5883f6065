"""Writes all output of the driver to stdout, one complete line at a time because several threads write."""

from __future__ import annotations

import sys
import threading

from slipway_driver.hidden import without_hidden

_lock = threading.Lock()


def emit(line: str) -> None:
    """Prints a line without a prefix and with secrets masked: output and progress lines of the ranks."""
    line = without_hidden(line)
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def log(line: str) -> None:
    """Prints a log line of the driver."""
    emit("slipway-driver: " + line)
