"""Writes all output of the driver to stdout, one complete line at a time because several threads write, and without secret values."""

from __future__ import annotations

import json
import sys
import threading
from typing import List
from urllib.parse import quote

MASK = "***"
#: Shorter values are words like "true"; masking them would make the output unreadable.
SHORTEST_SECRET = 8
#: All encodings of the hidden values, longest first.
_forms: List[str] = []
_lock = threading.Lock()


def hide(value: str) -> None:
    """Masks a value from now on: the value itself, each of its lines, and its JSON and URL encodings."""
    forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), *value.splitlines()}
    _forms.extend(form for form in forms if len(form) >= SHORTEST_SECRET and form not in _forms)
    _forms.sort(key=len, reverse=True)


def without_hidden(text: str) -> str:
    """`text` with every hidden value masked."""
    for value in _forms:
        if value in text:
            text = text.replace(value, MASK)
    return text


def emit(line: str) -> None:
    """Prints a line without a prefix and with secrets masked: output and progress lines of the ranks."""
    line = without_hidden(line)
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def log(line: str) -> None:
    """Prints a log line of the driver."""
    emit("slipway-driver: " + line)
