"""Progress lines of the trainer: `slipway {json}`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from .types import LogLine

#: One step: attempt, at and step always; loss, tokens, tokensPerSecondPerGpu, learningRate and others where the line has them.
Step = dict[str, Any]

_PREFIX = "slipway {"


def steps_of(lines: Iterable[LogLine]) -> list[Step]:
    """The `step` lines in the order of time; every other line is skipped."""
    steps: list[Step] = []
    for line in lines:
        fields = _fields(line["message"])
        step = fields.get("step")
        if fields.get("event") != "step" or not isinstance(step, (int, float)) or step % 1 != 0:
            continue
        known = {key: value for key, value in fields.items() if key != "event" and _is_plain(value)} | {"step": int(step)}
        steps.append({"attempt": line["attempt"], "at": line["at"], **known})
    return steps


def _fields(message: str) -> dict[str, Any]:
    if not message.startswith(_PREFIX):
        return {}
    try:
        fields = json.loads(message[len(_PREFIX) - 1 :])
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, str)) or (isinstance(value, float) and math.isfinite(value))
