"""Splits the output of programs into lines, also where a program redraws a line, the output of wrappers into the lines that they pass on,
and lines into the labels of launchers and what is behind them.
"""

from __future__ import annotations

import re
from typing import IO, Iterator, Tuple

#: How a wrapper ends what it passes to the driver: a line for the log and for the readers of progress, a state of a redrawn line that only
#: these read, or text that only the log shows.
LINE, STATE, SHOWN = "\n", "\r", "\v"
#: Begins a line with an event of a program.
PREFIX = "slipway {"
#: Longer lines are split, to bound the memory for a line without an end.
LONGEST_LINE = 1 << 16
#: A program that moves the cursor up by more than a screen is not redrawing lines.
MAX_ROWS = 50

#: Newlines; carriage return, backspace, and the sequences of ECMA-48 and DEC terminals that move the cursor to text written before.
_END = re.compile(rb"(?P<newline>\r*[\n\v\f])|\x1b\[(?P<rows>\d*)(?P<way>[ABEF])|[\r\b]+|\x1b\[[\d;]*[DGHdfu]|\x1b[8M]")
#: The beginning of a sequence whose end has not been read yet.
_BEGUN = re.compile(rb"\x1b(?:\[[\d;]{0,16})?$")
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PASSED_ON = re.compile(rb"\r?\n|\r|\v")
#: torchrun --tee and PyTorch's excepthook; mpirun --tag-output, also of Open MPI 5 and as AWS's toolkit rewrites it; Ray.
_LABEL = re.compile(
    r"\[(?:default|rank)(\d+)\]: ?"
    r"|\[(?:[\w.-]+@)?\d+,(?:mpirank:)?(\d+)(?:,[\w.-]+)?\]<std(?:out|err)>: ?"
    r"|\((?:\w+(?: rank=(\d+))?,? )?pid=\d+(?:, ip=[\d.]+)?\) "
)
#: A launcher's label, and PyTorch's within it.
MAX_LABELS = 2


def plain(raw: bytes) -> str:
    """The text of a line, without colors and control characters. Invalid UTF-8 is replaced."""
    return _ESCAPES.sub("", raw.decode("utf-8", "replace"))


class Lines:
    """Splits one stream of a program. The result does not depend on the sizes of the parts in which it is read."""

    def __init__(self) -> None:
        self._held = b""
        #: Rows between the cursor and the last line. A newline in a row above it only moves the cursor.
        self._rows_up = 0

    def feed(self, data: bytes) -> Iterator[Tuple[str, str]]:
        """The lines (LINE) and states of redrawn lines (STATE) that are complete after `data`."""
        data, begin = self._held + data, 0
        begun = _BEGUN.search(data)
        for end in _END.finditer(data, 0, begun.start() if begun else len(data)):
            yield from self._ended(data[begin : end.start()], self._kind(end))
            begin = end.end()
        self._held = data[begin:]
        while len(self._held) > LONGEST_LINE + len(begun.group() if begun else b""):
            yield plain(self._held[:LONGEST_LINE]), LINE
            self._held = self._held[LONGEST_LINE:]

    @property
    def rest(self) -> str:
        """The text after the last end."""
        return plain(self._held)

    def _ended(self, raw: bytes, kind: str) -> Iterator[Tuple[str, str]]:
        while len(raw) > LONGEST_LINE:
            yield plain(raw[:LONGEST_LINE]), LINE
            raw = raw[LONGEST_LINE:]
        text = plain(raw)
        if text or kind == LINE:
            yield text, kind

    def _kind(self, end: "re.Match[bytes]") -> str:
        if end["newline"] is None:
            if end["way"]:
                rows = int(end["rows"][:4] or 1)
                self._rows_up += rows if end["way"] in b"AF" else -rows
                self._rows_up = max(0, min(MAX_ROWS, self._rows_up))
            return STATE
        if self._rows_up == 0:
            return LINE
        self._rows_up -= 1
        return STATE


def passed_on(source: "IO[bytes]") -> Iterator[Tuple[str, str]]:
    """The lines that wrappers passed on, and those of the launcher itself, each with its kind."""
    held = b""
    for data in iter(lambda: source.read1(1 << 16), b""):  # type: ignore[attr-defined]
        data, begin = held + data, 0
        for end in _PASSED_ON.finditer(data):
            yield data[begin : end.start()].decode("utf-8", "replace"), end.group().decode().replace("\r\n", LINE)
            begin = end.end()
        held = data[begin:]
        if len(held) > 4 * LONGEST_LINE:
            yield held.decode("utf-8", "replace"), LINE
            held = b""
    if held:
        yield held.decode("utf-8", "replace"), LINE


def without_label(line: str) -> Tuple[str, str]:
    """The number of the rank in the first label of a line ("" if it has none), and the line behind the label."""
    found = _LABEL.match(line) if line.startswith(("[", "(")) else None
    if found is None:
        return "", line
    return (found[found.lastindex] if found.lastindex else ""), line[found.end() :]


def without_labels(line: str) -> Tuple[str, str]:
    """All labels at the beginning of a line, and the line behind them."""
    if not line.startswith(("[", "(")):
        return "", line
    rest = line
    for _ in range(MAX_LABELS):
        rest = without_label(rest)[1]
    return line[: len(line) - len(rest)].rstrip(), rest
