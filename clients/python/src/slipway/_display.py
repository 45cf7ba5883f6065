"""What notebooks and terminals show."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from ._plain_text import plain_line
from .types import Issue, Status

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class IssueList(list[Issue]):
    """Findings, drawn as a table in a notebook."""

    def _repr_html_(self) -> str:
        rows = [(issue["level"], issue["path"], issue["message"], issue["rule"]) for issue in self]
        return table_html(("level", "option", "message", "rule"), rows) if rows else "valid"


class PlanView(dict[str, Any]):
    """The numbers of a plan, drawn as a table in a notebook and as lines on a terminal."""

    def _rows(self) -> list[tuple[str, str]]:
        if "layouts" in self:
            return self._neuron_rows()
        memory = self["memoryGiB"]
        usd = (self.get("usd") or {}).get("onDemand")
        return [
            ("memory", f"{self['fits']}: {memory['total']:.1f} of {memory['available']:.1f} GiB per GPU"),
            ("step", f"{self['stepSeconds']:.2f} s"),
            ("speed", f"{self['tokensPerSecondPerGpu']:.0f} tokens/s per GPU, MFU {100 * self['mfu']:.0f} %"),
            ("time", "-" if self.get("wallHours") is None else f"{self['wallHours']:.1f} h"),
            ("cost", "-" if usd is None else f"${usd:,.0f} on demand"),
        ]

    def _neuron_rows(self) -> list[tuple[str, str]]:
        of_layouts = [
            ("", f"tensor {layout['tensor']} x FSDP {layout['shard']}: {layout['memoryGiB']['total']:.1f} GiB")
            for layout in self["layouts"]
        ]
        return [("memory", f"{self['fits']}: {self['coreGiB']:.1f} GiB per NeuronCore"), *of_layouts, ("speed", "-"), ("cost", "-")]

    def _repr_html_(self) -> str:
        return table_html(("plan", ""), self._rows())

    def __str__(self) -> str:
        return "\n".join(f"{name:8}{value}" for name, value in self._rows())


def progress_line(status: Status) -> str:
    """One line about a run that moves."""
    parts: list[str] = [status["state"]]
    attempt = status.get("attempt") or len(status["attempts"])
    if attempt:
        parts.append(f"attempt {attempt}")
    if status["step"] is not None:
        parts.append(f"step {status['step']}")
    if status["committedStep"] is not None:
        parts.append(f"committed {status['committedStep']}")
    reason = f" ({status['reason']})" if status["reason"] else ""
    return plain_line(f"{status['runId']}: {', '.join(parts)}{reason}")


def size_text(count: int) -> str:
    """Bytes as the command line writes them."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:,.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def table_html(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of a notebook."""

    def cells(row: Sequence[object], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(plain_line(cell))}</{tag}>" for cell in row)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def text_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns for a terminal."""
    lines = [[plain_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def list_text(runs: Sequence[Status]) -> str:
    """Runs as a table for a terminal."""
    return text_table(*list_table(runs))


def list_table(runs: Sequence[Status]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table of runs; tags and notes have columns where some run has them."""
    rows = [(*_list_row(run), _tags_text(run), run.get("note", "")) for run in runs]
    head = ("run", "state", "since (UTC)", "instances", "attempt", "step", "committed", "USD", "reason", "tags", "note")
    shown = [i for i, name in enumerate(head) if name not in ("tags", "note") or any(row[i] for row in rows)]
    return [head[i] for i in shown], [[row[i] for i in shown] for row in rows]


def _tags_text(run: Status) -> str:
    return " ".join(f"{key}={value}" for key, value in run.get("tags", {}).items())


def _list_row(run: Status) -> tuple[str, ...]:
    queued = "" if run["queuePosition"] is None else f" ({run['queuePosition']})"
    created, attempt, usd = run.get("createdAt"), run.get("attempt"), run["spendUsd"]
    cells = (
        created and created[:16].replace("T", " "),
        run["attempts"][-1].get("instanceCount") if run["attempts"] else None,
        len(run["attempts"]) if attempt is None else attempt,
        run["step"],
        run["committedStep"],
        None if usd is None else f"{usd:.2f}",
    )
    return run["runId"], f"{run['state']}{queued}", *("-" if cell is None else str(cell) for cell in cells), run["reason"]


def status_text(status: Status) -> str:
    """One run on a terminal, its attempts below."""
    lines = [progress_line(status)]
    for attempt in status["attempts"]:
        steps = "-" if attempt["lastStep"] is None else f"{attempt['firstStep'] or '?'}-{attempt['lastStep']}"
        lines.append(plain_line(f"  {attempt['trainingJobName']}  {attempt['status']}  steps {steps}  {attempt['reason']}").rstrip())
    return "\n".join(lines)
