"""Values that no line and no file of the driver may show. The module imports nothing of ours, so that the log can use it."""

from __future__ import annotations

import json
from typing import List
from urllib.parse import quote

MASK = "***"
#: Shorter values are words like "true"; masking them would only spoil the text.
SHORTEST_SECRET = 8
#: Each form that a value may be written in, the longest first.
_forms: List[str] = []


def hide(value: str) -> None:
    """Masks a value from now on: as it is, line by line, as JSON and in a URL."""
    forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), *value.splitlines()}
    _forms.extend(form for form in forms if len(form) >= SHORTEST_SECRET and form not in _forms)
    _forms.sort(key=len, reverse=True)


def without_hidden(text: str) -> str:
    """`text` with every hidden value masked."""
    for value in _forms:
        if value in text:
            text = text.replace(value, MASK)
    return text
