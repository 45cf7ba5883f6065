"""Progress lines: `slipway {json}` from scripts that write them, or the run file's stepRegex for those that do not."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Optional

PREFIX = "slipway {"
_RANK_LABEL = re.compile(r"^\[rank \d+\] ")


def progress_line(event: str, **fields: Any) -> str:
    """One progress line."""
    return "slipway " + json.dumps(dict({"event": event}, **fields), separators=(",", ":"))


def parse_progress(line: str) -> Optional[Dict[str, Any]]:
    """The event of a progress line; None for every other line."""
    if not line.startswith(PREFIX):
        return None
    try:
        found = json.loads(line[len("slipway ") :])
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else None


class ProgressReader:
    """Turns a host's output into events. `step_regex` has the step number as its first group."""

    def __init__(self, step_regex: Optional[str]) -> None:
        self._pattern = re.compile(step_regex) if step_regex else None

    def read(self, line: str) -> Optional[Dict[str, Any]]:
        event = parse_progress(line)
        if event is not None or self._pattern is None:
            return event
        found = self._pattern.search(_RANK_LABEL.sub("", line))
        if found is None or not found.groups() or not str(found.group(1)).isdigit():
            return None
        return {"event": "step", "step": int(found.group(1))}
