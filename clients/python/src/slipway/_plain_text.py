"""Makes text that a job or a person wrote safe for a terminal and a page, in the same way as lib/core/config/formats/plain-text.ts."""

from __future__ import annotations

import re

_CONTROL = "\\x00-\\x1f\\x7f-\\x9f"
_SEQUENCES = re.compile(
    f"(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^{_CONTROL}]*(?:\x07|\x1b\\\\|\x9c)|\x1b[ -/]*[0-~]?"
)
_LINE_BREAKS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
#: Category Cc without line feed and tab, categories Cf, Zl and Zp, and Default_Ignorable_Code_Point without U+FE0E and U+FE0F.
_HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
#: How much of a text is read for a line; the rest of a longer one is cut off.
_READ_FACTOR = 8


def plain_text(text: str) -> str:
    """Without escape sequences and characters that are not visible, but for line feeds and tabs."""
    text = _SEQUENCES.sub("", _LONE_SURROGATES.sub("\ufffd", text))
    return _HIDDEN.sub("", _LINE_BREAKS.sub("\n", text))


def plain_line(text: object, most: int = 1000) -> str:
    """The same as one line, cut at `most` characters with `...` at its end."""
    whole = str(text)
    first, *others = plain_text(whole[: _READ_FACTOR * most]).replace("\t", " ").split("\n")
    parts = [part for part in (first.rstrip(), *(line.strip() for line in others)) if part]
    line = " ".join(parts) if others else first
    if len(line) <= most and len(whole) <= _READ_FACTOR * most:
        return line
    return f"{line[: max(0, most - 3)]}..."[:most]
