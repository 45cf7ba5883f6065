"""Writes all output of the driver to stdout, one complete line at a time because several threads write, and without secret values.

`redacted` is for text that the driver publishes: FailureReason is visible to everyone who may describe the job.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from typing import List, Mapping, Sequence
from urllib.parse import quote

MASK = "***"
#: Shorter values are words like "true"; masking them would make the output unreadable.
SHORTEST_SECRET = 8
#: All encodings of the hidden values, longest first.
_forms: List[str] = []
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|(?:SECRET_)?ACCESS_KEY(?:_ID)?|PRIVATE_KEY|CREDENTIALS?)$", re.IGNORECASE
)
#: Patterns of values that are recognizable as secrets, and their replacements.
_SECRET_FORMS = (
    (re.compile(r"(?i)\b(X-Amz-(?:Signature|Credential|Security-Token)=|Signature=|AWSAccessKeyId=)[^&\s\"']+"), r"\1" + MASK),
    (re.compile(r"\b(\w[\w+.-]*://[^\s/:@]*:)[^\s/@]+@"), r"\1" + MASK + "@"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MASK),
    (re.compile(r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abp]-|sk-)[\w-]{16,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), MASK),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=-]{8,}"), r"\1 " + MASK),
    (re.compile(r"(?i)((?:password|passwd|secret)[\w-]*[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&)}\]]{6,}"), r"\1" + MASK),
    # "token" is a common word in training, so only values that look random count as secrets.
    (re.compile(r"(?i)((?:token|[_-]key|apikey)[\"']?\s*[=:]\s*[\"']?)(?=[^\s\"',;&)}\]]*\d)[\w.~+/=-]{16,}"), r"\1" + MASK),
)
_lock = threading.Lock()


def hide(value: str) -> None:
    """Masks a value from now on: the value itself, each of its lines, and its JSON and URL encodings."""
    forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), *value.splitlines()}
    _forms.extend(form for form in forms if len(form) >= SHORTEST_SECRET and form not in _forms)
    _forms.sort(key=len, reverse=True)


def without_hidden(text: str) -> str:
    """`text` with every hidden value masked."""
    for value in _forms:
        if value in text:
            text = text.replace(value, MASK)
    return text


def emit(line: str) -> None:
    """Prints a line without a prefix and with secrets masked: output and progress lines of the ranks."""
    line = without_hidden(line)
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def log(line: str) -> None:
    """Prints a log line of the driver."""
    emit("slipway-driver: " + line)


def secrets_of(environ: Mapping[str, str], *more: str) -> List[str]:
    """Values of variables with the name of a secret, and `more`; longest first."""
    named = [value for name, value in environ.items() if _SECRET_NAME.search(name) and not value.isdigit()]
    return sorted({value for value in [*named, *more] if len(value) >= SHORTEST_SECRET}, key=len, reverse=True)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """Masks all `secrets` in `text`, and all values that look like a secret."""
    text = without_hidden(text)
    for secret in secrets:
        text = text.replace(secret, MASK)
    for form, rest in _SECRET_FORMS:
        text = form.sub(rest, text)
    return text
