"""The outcome of a launcher that the ranks' records cannot show: `launcher.json` in the state folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, Optional

_NAME = "launcher.json"


class LauncherEnd(NamedTuple):
    """`code`: the container's exit code. `kind`: a failure class of the driver. `host`: the host that is the cause."""

    code: int
    kind: str
    host: str
    reason: str


def write_launcher_end(state: Path, end: LauncherEnd) -> None:
    """Writes the outcome unless one exists: later outcomes are consequences of the first."""
    target = state / _NAME
    if target.exists():
        return
    temporary = state / (_NAME + ".tmp")
    temporary.write_text(json.dumps(end._asdict()), encoding="utf-8")
    temporary.rename(target)


def read_launcher_end(state: Path) -> Optional[LauncherEnd]:
    """The recorded outcome; None if there is none."""
    try:
        found = json.loads((state / _NAME).read_text(encoding="utf-8"))
        return LauncherEnd(int(found["code"]), str(found["kind"]), str(found["host"]), str(found["reason"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
