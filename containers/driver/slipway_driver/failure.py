"""/opt/ml/output/failure: one line of JSON, then the last lines of the first real error, within the 1,024 characters that the service
keeps.

A file that the script has written is kept; our line is appended if there is room.
Source: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-output.html (2026-11-20).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Optional, Sequence

from slipway_driver.log import without_hidden

LIMIT = 1024
REASON_LIMIT = 300


def failure_text(
    code: int, kind: str, host: str, rank: Optional[int], step: Optional[int], reason: str, lines: Sequence[str] = (), existing: str = ""
) -> str:
    """The complete content of the file. `existing`: the text that the script has written to it."""
    fields = {"slipway": 1, "class": kind, "code": code, "host": host, "rank": rank, "step": step}
    known, reason, head = {name: value for name, value in fields.items() if value is not None}, reason[:REASON_LIMIT], ""
    while not head or (len(head) > LIMIT and reason):
        reason = reason[: len(reason) // 2] if head else reason
        head = json.dumps(dict(known, reason=reason), separators=(",", ":"), ensure_ascii=False)
    existing = existing.rstrip("\n")
    if existing:
        together = existing + "\n" + head
        return together if len(together) <= LIMIT else existing
    # The end of a traceback is the most informative, so lines are taken from the end.
    kept: "list[str]" = []
    remaining = LIMIT - len(head)
    for line in reversed([line for line in lines if line.strip()]):
        if len(line) + 1 > remaining:
            break
        kept.insert(0, line)
        remaining -= len(line) + 1
    return "\n".join([head, *kept])


def write_failure(path: Path, **fields: "object") -> None:
    """Writes the failure file. An error of the file system is printed and must not hide the failure itself."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existing = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        text = failure_text(existing=without_hidden(existing), **fields)  # type: ignore[arg-type]
        path.write_text(without_hidden(text), encoding="utf-8", errors="replace")
    except OSError as error:
        print("the failure file could not be written: %s" % error, flush=True)
