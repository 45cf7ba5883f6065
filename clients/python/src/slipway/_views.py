"""What a notebook draws of answers: tables, and small charts in the colours of the page around them."""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Sequence
from typing import Any

from ._checkpoints import Checkpoint
from ._display import list_table, size_text, table_html
from .types import Event, Status

_WIDTH, _HEIGHT, _LEFT, _ROW = 480, 150, 56, 22
_COLORS = ("#2a78d6", "#eb6834")
_BAR_COLORS = {"Completed": "#159a6c", "Failed": "#cf3331"}
#: Events of a timeline that a notebook shows; the list has all of them.
_MAX_EVENTS = 50


class RunsView(list[Status]):
    """Runs, drawn as a table."""

    def _repr_html_(self) -> str:
        return table_html(*list_table(self)) if self else "no runs"


class StatusView(dict[str, Any]):
    """The status of a run, drawn as a table with its attempts over time."""

    def _repr_html_(self) -> str:
        attempts = self["attempts"]
        rows = [
            (a["trainingJobName"], a["status"], _steps(a), _minute(a["startedAt"]), _minute(a["endedAt"]), a["reason"]) for a in attempts
        ]
        head = ("job", "status", "steps", "began (UTC)", "ended (UTC)", "reason")
        tables = [table_html((self["runId"], ""), self._facts()), table_html(head, rows) if rows else ""]
        return "".join([tables[0], _attempt_bars(attempts), tables[1]])

    def _facts(self) -> list[tuple[str, str]]:
        step, percent, interval = self["step"], self.get("progressPercent"), self.get("etaInterval80")
        end = _minute(self.get("etaAt"))
        facts = [
            ("state", self["state"]),
            ("reason", self["reason"]),
            ("step", _shown(step, "") + (f" ({percent:g} %)" if percent is not None else "")),
            ("committed step", _shown(self["committedStep"], "")),
            ("loss", _shown(self["loss"], ".4f")),
            ("expected end (UTC)", f"{end}, 80 %: {_minute(interval[0])} to {_minute(interval[1])}" if interval else end),
            ("goodput", "-" if self["goodput"] is None else f"{100 * self['goodput']:.1f} %"),
            ("spend", "-" if self["spendUsd"] is None else f"${self['spendUsd']:.2f}"),
            ("tags", " ".join(f"{key}={value}" for key, value in self.get("tags", {}).items())),
            ("note", self.get("note", "")),
        ]
        return [(name, value) for name, value in facts if value]


class TimelineView(list[Event]):
    """The events of a run, drawn as a table of the newest."""

    def _repr_html_(self) -> str:
        earlier = len(self) - _MAX_EVENTS
        rows = [(_second(event["at"]), event["what"], event["text"]) for event in self[-_MAX_EVENTS:]]
        return table_html(("at (UTC)", "event", "what"), rows) + (f"<div>{earlier} earlier events</div>" if earlier > 0 else "")


class CheckpointsView(list[Checkpoint]):
    """The committed checkpoints of a run, drawn as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (c["step"], _minute(c["savedAt"]), size_text(c["sizeBytes"]), c["objects"], "yes" if c["isComplete"] else "no", c["uri"])
            for c in self
        ]
        head = ("step", "saved (UTC)", "size", "objects", "complete", "location")
        return table_html(head, rows) if rows else "no committed checkpoint"


def chart_svg(series: Sequence[tuple[str, Sequence[tuple[float, float]]]], x_name: str, y_name: str) -> str:
    """Lines with the ranges of both axes; empty with fewer than two finite points."""
    lines = [(name, [point for point in points if all(map(math.isfinite, point))]) for name, points in series]
    every = [point for _, points in lines for point in points]
    if len(every) < 2:
        return ""
    (left, right), (low, high) = ((min(p[i] for p in every), max(p[i] for p in every)) for i in (0, 1))
    x_span, y_span = (right - left) or 1.0, (high - low) or 1.0
    parts = []
    for place, (name, points) in enumerate(lines):
        color = _COLORS[place % len(_COLORS)]
        at = " ".join(
            f"{_LEFT + (x - left) / x_span * (_WIDTH - _LEFT - 8):.1f},{8 + (high - y) / y_span * (_HEIGHT - 40):.1f}" for x, y in points
        )
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{at}"/>')
        if len(lines) > 1:
            parts.append(f'<rect fill="{color}" x="{_WIDTH - 20}" y="{11 + 16 * place}" width="12" height="10"/>')
            parts.append(_label(_WIDTH - 26, 20 + 16 * place, name, "end"))
    bottom = _HEIGHT - 32
    parts += [
        f'<path d="M{_LEFT} 8V{bottom}H{_WIDTH - 8}" fill="none" stroke="currentColor" stroke-opacity=".4"/>',
        _label(_LEFT - 6, 16, f"{high:g}", "end"),
        _label(_LEFT - 6, bottom, f"{low:g}", "end"),
        _label(_LEFT - 6, (16 + bottom) // 2, y_name, "end"),
        _label(_LEFT, bottom + 16, f"{left:g}"),
        _label(_WIDTH - 8, bottom + 16, f"{right:g}", "end"),
        _label((_LEFT + _WIDTH) // 2, bottom + 16, x_name, "middle"),
    ]
    return _svg(f"{y_name} over {x_name}", _HEIGHT, parts)


def _attempt_bars(attempts: Sequence[dict[str, Any]]) -> str:
    """When each attempt trained; one that has not ended lasts until now."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    spans = [(a["status"], _epoch(a["startedAt"]), _epoch(a["endedAt"] or now)) for a in attempts if a["startedAt"]]
    if not spans:
        return ""
    start = min(begin for _, begin, _ in spans)
    scale = (_WIDTH - _LEFT - 8) / (max(end for _, _, end in spans) - start or 1.0)
    parts = []
    for place, (state, begin, end) in enumerate(spans):
        x, width = _LEFT + (begin - start) * scale, max(2.0, (end - begin) * scale)
        fill = _BAR_COLORS.get(state, _COLORS[0])
        parts.append(f'<rect fill="{fill}" x="{x:.1f}" y="{4 + _ROW * place}" width="{width:.1f}" height="14"/>')
        parts.append(_label(_LEFT - 6, 16 + _ROW * place, f"a{place + 1}", "end"))
    return _svg("attempts over time", _ROW * len(spans) + 4, parts)


def _svg(name: str, height: int, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    style = 'style="max-width:100%;font:12px sans-serif" fill="currentColor"'
    return f'<svg {size} role="img" aria-label="{name}" {style}>{"".join(parts)}</svg>'


def _label(x: int, y: int, text: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor">{html.escape(text)}</text>'


def _steps(attempt: dict[str, Any]) -> str:
    return "-" if attempt["lastStep"] is None else f"{attempt['firstStep'] or '?'}-{attempt['lastStep']}"


def _shown(value: Any, form: str) -> str:
    return "-" if value is None else format(value, form)


def _minute(iso: str | None) -> str:
    return "-" if iso is None else iso[5:16].replace("T", " ")


def _second(iso: str) -> str:
    return iso[:19].replace("T", " ")


def _epoch(iso: str) -> float:
    return datetime.datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()
