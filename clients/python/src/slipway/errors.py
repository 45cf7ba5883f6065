"""What can go wrong, as exceptions with the command line's own texts and exit codes."""

from __future__ import annotations

from collections.abc import Sequence

from .types import Issue


class SlipwayError(Exception):
    """Any failure of the client."""

    exit_code = 3


class UsageError(SlipwayError):
    """An argument that cannot be right, or a file that cannot be read."""

    exit_code = 2


class ServiceError(SlipwayError):
    """A call that failed after its retries."""


class Refused(SlipwayError):
    """Refused by validation, plan, quota or guardrail. `issues` has every finding, warnings included."""

    exit_code = 1

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = list(issues)
        errors = [issue["message"] for issue in self.issues if issue["level"] == "error"]
        super().__init__("\n".join(errors) or "refused")
