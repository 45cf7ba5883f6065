"""Removes secrets from text that the driver publishes: FailureReason is visible to everyone who may describe the job."""

from __future__ import annotations

import re
from typing import List, Mapping, Sequence

from slipway_driver.errors import Failure
from slipway_driver.log import MASK, SHORTEST_SECRET, without_hidden

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|(?:SECRET_)?ACCESS_KEY(?:_ID)?|PRIVATE_KEY|CREDENTIALS?)$", re.IGNORECASE
)
#: Patterns of values that are recognizable as secrets, and their replacements.
_FORMS = (
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


def secrets_of(environ: Mapping[str, str], *more: str) -> List[str]:
    """Values of variables with the name of a secret, and `more`; longest first."""
    named = [value for name, value in environ.items() if _SECRET_NAME.search(name) and not value.isdigit()]
    return sorted({value for value in [*named, *more] if len(value) >= SHORTEST_SECRET}, key=len, reverse=True)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """Masks all `secrets` in `text`, and all values that look like a secret."""
    text = without_hidden(text)
    for secret in secrets:
        text = text.replace(secret, MASK)
    for form, rest in _FORMS:
        text = form.sub(rest, text)
    return text


def redacted_failure(failure: Failure, secrets: Sequence[str]) -> Failure:
    """The failure with all secrets masked."""
    return failure._replace(reason=redacted(failure.reason, secrets), lines=[redacted(line, secrets) for line in failure.lines])
