"""Progress lines: `slipway {json}` from scripts that print them, or matches of the run file's regular expressions for other scripts."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

from slipway_driver.log import log
from slipway_driver.output_lines import PREFIX, without_label
from slipway_driver.progress_formats import FormatReader

_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
#: Limits of values: a step has at most 15 digits.
MAX, LONGEST_STEP, LONGEST_NAME = 10**15, 15, 100
_RANK_LABEL = re.compile(r"^\[rank \d+\] ")


def _split(line: str) -> Tuple[str, str, str]:
    """Which rank has printed a line, the line as the rank's program has printed it, and without the label of a launcher within that."""
    label = _RANK_LABEL.match(line)
    rank, printed = (label.group(), line[label.end() :]) if label else ("", line)
    number, unlabelled = without_label(printed)
    return rank + number, printed, unlabelled


def progress_line(event: str, **fields: Any) -> str:
    """Formats an event as a progress line."""
    return "slipway " + json.dumps(dict({"event": event}, **fields), separators=(",", ":"))


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -MAX <= value <= MAX


#: Fields that the driver reads: whether a value fits, and what it must be.
_FIELDS = {
    "step": (_is_whole, "a whole number"),
    "loss": (_is_number, "a number"),
    "budgetSeconds": (_is_number, "a number"),
    "ratio": (_is_number, "a number"),
    "seconds": (_is_number, "a number"),
    "name": (lambda value: isinstance(value, str) and len(value) <= LONGEST_NAME, "a short text"),
}


def parse_event(line: str) -> Tuple[Optional[Dict[str, Any]], str]:
    """The event of a progress line, without values that do not fit, and why the line or a value cannot be read ("" if everything can).

    None without a reason for any other line.
    """
    if not line.startswith(PREFIX):
        return None, ""
    issues: List[str] = []
    try:
        found = json.loads(line[len("slipway ") :], parse_constant=lambda name: issues.append("must have no %s" % name))
    except (ValueError, RecursionError):
        return None, "must be one JSON object of at most 64 KB"
    if not isinstance(found.get("event"), str):
        return None, "event must be a text"
    for field, (fits, kind) in _FIELDS.items():
        if field in found and not fits(found[field]):
            value = found.pop(field)
            if value is not None:
                issues.append("%s must be %s, got %s" % (field, kind, json.dumps(value)[:40]))
    if found["event"] == "step" and "step" not in found:
        return None, (issues or ["step must be a whole number"])[-1]
    if "step" in found:
        found["step"] = int(found["step"])
    if issues:
        found = {name: value for name, value in found.items() if value is not None}
    return found, "; ".join(issues[:1])


class ProgressReader:
    """Parses a host's output into events. The first group of `step_regex` is the step, that of `loss_regex` the loss; without both, the
    lines of `output_format` count.

    A `step` event contains the loss of the same line. A loss on a line without a step becomes a `metric` event. With a format, a
    bar that moves without a step becomes a `bar` event.
    """

    def __init__(self, step_regex: Optional[str], loss_regex: Optional[str] = None, output_format: str = "auto") -> None:
        self._step = re.compile(step_regex) if step_regex else None
        self._loss = re.compile(loss_regex) if loss_regex else None
        self._format = None if step_regex or loss_regex or output_format == "none" else FormatReader(output_format)
        self._reported = ""
        self._has_step_events = False
        #: Why the last line was an event line that cannot be read, or not completely.
        self.issue = ""

    @property
    def format(self) -> str:
        """The format that the output was found to have; "" if none."""
        return self._format.found if self._format else ""

    def report_format(self) -> None:
        """Tells once which format was found."""
        if self.format != self._reported:
            self._reported = self.format
            log("steps and losses are read from the output, which has the format %s (progress.format)" % self.format)

    def read(self, line: str) -> Optional[Dict[str, Any]]:
        """The event of a progress line, of a match of the run file's expressions, or of a known format; None for other lines."""
        event, self.issue = parse_event(line)
        if line.startswith(PREFIX):
            self._has_step_events = self._has_step_events or (event or {}).get("event") == "step"
            return event
        rank, text, unlabelled = _split(line)
        if self._format is not None:
            # A script that tells its steps knows them better than its bar shows them.
            return None if self._has_step_events else self._format.read(rank, unlabelled)
        step, loss = _group(self._step, text), _number(self._loss, text)
        with_loss = {} if loss is None else {"loss": loss}
        if step is not None and step.isdecimal() and len(step) <= LONGEST_STEP:
            return {"event": "step", "step": int(step), **with_loss}
        return {"event": "metric", **with_loss} if with_loss else None


class FoundSteps:
    """Generates progress lines from matches of the run file's expressions, so that reports and metrics contain the steps of every script.

    Only the lines of one rank are used: the first rank whose output matches, preferably one of this host. Nothing is generated for a script
    that prints its own step lines.

    Losses on separate lines come either after their steps or before them, which the first of them decide. Others in between, such as that
    of a validation, are left out. A loss before the first step, as of a resume, may be either: it belongs to that step if it came sooner
    before it than the next loss came after it.
    """

    def __init__(self, expects_loss: bool) -> None:
        self._expects_loss = expects_loss
        self._rank: Optional[str] = None
        self._host = ""
        #: The last step that was printed, and the last step that a rank only repeats after it replaces the rank of another host.
        self._last: Optional[int] = None
        self._repeats: Optional[int] = None
        self._is_own = False
        #: Whether losses come before their steps; None while that is not known.
        self._loss_first: Optional[bool] = None
        #: The step that waits for its loss, and the loss that waits for its step, or may be that of the waiting step.
        self._step: Optional[int] = None
        self._loss: Optional[float] = None
        self._step_at = self._loss_at = 0.0
        #: The step that was printed last, and whether with a loss. Each process of a rank may print it.
        self._printed: Tuple[Optional[int], bool] = (None, False)

    def feed(self, line: str, event: Mapping[str, Any], host: str = "", now: float = 0.0) -> List[str]:
        """The progress lines that are complete after this line of output.

        :param event: the result of ``ProgressReader.read`` for the line
        :param host: the host that printed the line; empty for this host
        :param now: when it was read, in seconds
        """
        if line.startswith(PREFIX):
            self._is_own = self._is_own or event["event"] == "step"
            return []
        rank = _split(line)[0] or host
        if self._rank is None or (self._host and not host):
            self._rank, self._host, self._step, self._loss, self._repeats, self._printed = rank, host, None, None, self._last, (None, False)
        if self._is_own or rank != self._rank or host != self._host:
            return []
        if event["event"] != "step":
            return self._on_loss(event["loss"], now) if "loss" in event else []
        return self._on_step(event["step"], event.get("loss"), now)

    def end(self, now: Optional[float] = None) -> List[str]:
        """The step that still waits for its loss, perhaps with one that came before it. `now`: when the next step came, if one did."""
        if self._step is None:
            return []
        loss, self._loss = self._loss, None
        if loss is not None and now is not None:
            self._loss_first = self._came_with_step(now) or None
            loss = loss if self._loss_first else None
        return [self._line(self._step, loss)]

    def _came_with_step(self, now: float) -> bool:
        """Whether the loss before the waiting step is nearer to it than what has come now."""
        return self._step_at - self._loss_at <= now - self._step_at

    def _line(self, step: int, loss: Optional[float]) -> str:
        self._step, self._printed = None, (step, loss is not None)
        # JSON has no NaN or infinity.
        return progress_line("step", step=step, **({} if loss is None or not math.isfinite(loss) else {"loss": loss}))

    def _on_step(self, step: int, loss: Optional[float], now: float) -> List[str]:
        is_repeated = step == self._printed[0] if loss is None else (step, True) == self._printed
        is_repeated = is_repeated or (loss is None and step == self._step)
        if is_repeated or (self._repeats is not None and step <= self._repeats):
            return []
        self._repeats, self._last = None, step
        waited = [] if step == self._step else self.end(now)
        if loss is None and self._loss_first:
            loss, self._loss = self._loss, None
        elif loss is None and self._expects_loss:
            self._step, self._step_at = step, now
            return waited
        return [*waited, self._line(step, loss)]

    def _on_loss(self, loss: float, now: float) -> List[str]:
        step, before = self._step, self._loss
        if self._repeats is not None or (step is None and self._loss_first is False):
            return []
        if step is not None and before is not None:
            self._loss_first = self._came_with_step(now)
        elif step is not None:
            self._loss_first = False
        is_next = step is None or self._loss_first
        self._loss, self._loss_at = (loss, now) if is_next else (None, now)
        return [] if step is None else [self._line(step, before if is_next else loss)]


def _group(pattern: "Optional[re.Pattern[str]]", text: str) -> Optional[str]:
    """The first group of the first match; None if there is none."""
    found = pattern.search(text) if pattern else None
    return found.group(1) if found and found.groups() else None


def _number(pattern: "Optional[re.Pattern[str]]", text: str) -> Optional[float]:
    """The number that begins with the first group of the first match; None if there is none.

    The group may end within it: `[\\d.]+` matches neither an exponent nor only the number before the end of a sentence.
    """
    found = pattern.search(text) if pattern else None
    if found is None or not found.groups() or found.group(1) is None:
        return None
    number = _NUMBER.match(text, found.start(1))
    rest = text[number.end() : found.end(1)] if number else ""
    return float(number.group()) if number and not rest.strip(".,;: ") else None
