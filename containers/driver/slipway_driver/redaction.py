"""Takes secrets out of what the driver writes where others read it: FailureReason is shown to everybody who may describe the job."""

from __future__ import annotations

import re
from typing import List, Mapping, Sequence

from slipway_driver.errors import Failure
from slipway_driver.hidden import MASK, SHORTEST_SECRET, without_hidden

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|(?:SECRET_)?ACCESS_KEY(?:_ID)?|PRIVATE_KEY|CREDENTIALS?)$", re.IGNORECASE
)
#: What gives a secret away by its form, and what stays of it.
_FORMS = (
    (re.compile(r"(?i)\b(X-Amz-(?:Signature|Credential|Security-Token)=|Signature=|AWSAccessKeyId=)[^&\s\"']+"), r"\1" + MASK),
    (re.compile(r"\b(\w[\w+.-]*://[^\s/:@]*:)[^\s/@]+@"), r"\1" + MASK + "@"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MASK),
    (re.compile(r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abp]-|sk-)[\w-]{16,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), MASK),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=-]{8,}"), r"\1 " + MASK),
    (re.compile(r"(?i)((?:password|passwd|secret)[\w-]*[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&)}\]]{6,}"), r"\1" + MASK),
    # "token" is an everyday word in training: only what looks drawn by lot is taken for a secret.
    (re.compile(r"(?i)((?:token|[_-]key|apikey)[\"']?\s*[=:]\s*[\"']?)(?=[^\s\"',;&)}\]]*\d)[\w.~+/=-]{16,}"), r"\1" + MASK),
)


def secrets_of(environ: Mapping[str, str], *more: str) -> List[str]:
    """Values of the variables whose names say that they are secret, and `more`; the longest first."""
    named = [value for name, value in environ.items() if _SECRET_NAME.search(name) and not value.isdigit()]
    return sorted({value for value in [*named, *more] if len(value) >= SHORTEST_SECRET}, key=len, reverse=True)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """`text` with every one of `secrets`, and whatever looks like one, masked."""
    text = without_hidden(text)
    for secret in secrets:
        text = text.replace(secret, MASK)
    for form, rest in _FORMS:
        text = form.sub(rest, text)
    return text


def redacted_failure(failure: Failure, secrets: Sequence[str]) -> Failure:
    """A failure that may be shown."""
    return failure._replace(reason=redacted(failure.reason, secrets), lines=[redacted(line, secrets) for line in failure.lines])
