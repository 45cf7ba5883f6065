"""The progress lines that a model card is made of: a long run has more than one call of the launcher may hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from .types import LogLine

_PREFIX = "slipway {"
#: What trimEnd of JavaScript takes away.
_BLANK = " \t\n\v\f\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))


def card_lines(lines: Iterable[LogLine]) -> list[dict[str, Any]]:
    """First and last steps, the first step of each attempt, the newest evaluation and the newest EFA verdict, in the order of time."""
    kept: dict[tuple[object, ...], tuple[int, LogLine]] = {}
    for place, line in enumerate(sorted(lines, key=lambda each: each["at"])):
        fields = _fields(line["message"].rstrip(_BLANK))
        event, loss = fields.get("event"), _is_number(fields.get("loss"))
        if event == "efa" and line["attempt"] >= kept.get(("efa",), (0, line))[1]["attempt"]:
            kept[("efa",)] = (place, line)
        if not _is_number(fields.get("step")):
            continue
        if event == "eval" and loss:
            kept[("eval",)] = (place, line)
        if event == "step":
            names = ["step", *(["loss"] if loss else []), *(["tokens"] if _is_number(fields.get("tokens")) else [])]
            kept.setdefault(("attempt", line["attempt"]), (place, line))
            for name in names:
                kept.setdefault(("first", name), (place, line))
                kept[("last", name)] = (place, line)
    chosen = dict(sorted(kept.values(), key=lambda each: each[0]))
    return [{key: line[key] for key in ("at", "attempt", "message")} for line in chosen.values()]


def _fields(message: str) -> dict[str, Any]:
    if not message.startswith(_PREFIX):
        return {}
    try:
        # Numbers as JavaScript reads them: no NaN, and those that are too large are infinite.
        fields = json.loads(message[len(_PREFIX) - 1 :], parse_int=float, parse_constant=_refuse)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _refuse(name: str) -> float:
    raise ValueError(name)


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
