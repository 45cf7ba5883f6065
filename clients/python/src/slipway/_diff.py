"""What two runs were launched with, compared as `slipway report --diff` does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._metrics import Step
from .types import DiffOptionsItem, StatusConfiguration

_WORD = re.compile(r"[A-Za-z_][\w-]*\Z", re.ASCII)
_MAX_STEPS = 10


def different_options(a: object, b: object, path: str = "") -> list[DiffOptionsItem]:
    """Every value that is not the same in both, by its path; lists and groups are compared member by member."""
    found: list[DiffOptionsItem] = []
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            found += different_options(a.get(key), b.get(key), _member(path, str(key)))
    elif isinstance(a, list) and isinstance(b, list):
        for index in range(max(len(a), len(b))):
            found += different_options(_at(a, index), _at(b, index), f"{path}[{index}]")
    elif json.dumps(a) != json.dumps(b):
        found.append({"path": path, "values": [a, b]})
    return found


def _member(path: str, key: str) -> str:
    if not _WORD.match(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _at(items: Sequence[object], index: int) -> object:
    return items[index] if index < len(items) else None


def diff_of(a: StatusConfiguration, b: StatusConfiguration, steps: tuple[list[Step], list[Step]]) -> dict[str, Any]:
    """`options`, `code`, `driver`, `image` and `lossAtSteps` of `slipway report --diff --json`."""
    return {
        "options": different_options(a["spec"], b["spec"]),
        "code": _versions(a["codeSha256"], b["codeSha256"]),
        "driver": _versions(a["driverHash"], b["driverHash"]),
        "image": _versions(a["trainingImageUri"], b["trainingImageUri"]),
        "lossAtSteps": list(_loss_at_equal_steps(*steps)),
    }


def _versions(a: str | None, b: str | None) -> dict[str, Any]:
    return {"isSame": a == b, "values": [a, b]}


def _loss_at_equal_steps(a: list[Step], b: list[Step]) -> Iterator[dict[str, Any]]:
    """At most ten steps that both printed, the first and the last among them; of a step that was made again the last one counts."""
    first, second = ({step["step"]: step["loss"] for step in steps if step.get("loss") is not None} for steps in (a, b))
    common = sorted(first.keys() & second.keys())
    if len(common) > _MAX_STEPS:
        # Halves go up, as in JavaScript.
        places = [int(i * (len(common) - 1) / (_MAX_STEPS - 1) + 0.5) for i in range(_MAX_STEPS)]
        common = [common[place] for place in places]
    for step in common:
        yield {"step": step, "loss": [first[step], second[step]]}
