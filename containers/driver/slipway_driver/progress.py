"""Progress lines: `slipway {json}` from scripts that write them, or the run file's expressions for those that do not."""

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
    """Turns a host's output into events. The first group of `step_regex` is the step, that of `loss_regex` the loss.

    A step's event carries the loss of its own line. A loss on a line without a step is an event `metric` of its own.
    """

    def __init__(self, step_regex: Optional[str], loss_regex: Optional[str] = None) -> None:
        self._step = re.compile(step_regex) if step_regex else None
        self._loss = re.compile(loss_regex) if loss_regex else None

    def read(self, line: str) -> Optional[Dict[str, Any]]:
        """The progress event in a line of output: one of our own, or what the patterns of the run file find; None without either."""
        event = parse_progress(line)
        if event is not None or (self._step is None and self._loss is None):
            return event
        text = _RANK_LABEL.sub("", line)
        step, loss = _group(self._step, text), _number(_group(self._loss, text))
        with_loss = {} if loss is None else {"loss": loss}
        if step is not None and step.isdigit():
            return {"event": "step", "step": int(step), **with_loss}
        return {"event": "metric", **with_loss} if with_loss else None


def _group(pattern: "Optional[re.Pattern[str]]", text: str) -> Optional[str]:
    """The first group of the first match; None without one."""
    found = pattern.search(text) if pattern else None
    return found.group(1) if found and found.groups() else None


def _number(text: Optional[str]) -> Optional[float]:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
