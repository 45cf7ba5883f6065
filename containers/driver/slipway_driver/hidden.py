"""Secret values that must not appear in any output of the driver. Imports no other module of the driver, so that the log can use it."""

from __future__ import annotations

import json
from typing import List
from urllib.parse import quote

MASK = "***"
#: Shorter values are words like "true"; masking them would make the output unreadable.
SHORTEST_SECRET = 8
#: All encodings of the hidden values, longest first.
_forms: List[str] = []


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
