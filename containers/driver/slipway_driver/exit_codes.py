"""Exit codes of a container, and the error that carries one (docs/reference/runtime.md)."""

from __future__ import annotations

from slipway_driver.tables import CLASSES, EXIT_CODES

DONE, HANG, CHECKPOINT, DATA, LOSS, EFA, TRY_AGAIN, HAND_OVER, ENVIRONMENT = (
    EXIT_CODES[name] for name in ("DONE", "HANG", "CHECKPOINT", "DATA", "LOSS", "EFA", "TRY_AGAIN", "HAND_OVER", "ENVIRONMENT")
)
#: Exit code after SIGKILL, for example from the kernel's out-of-memory killer.
OUT_OF_MEMORY = 137


def class_of(code: int) -> str:
    """The failure class of an exit code; unknown codes belong to the user's code."""
    return CLASSES.get(code, "user-code")


def shell_code(returned: int) -> int:
    """Converts a return code of `subprocess` to a shell exit code: -N (signal N) becomes 128 + N."""
    return 128 - returned if returned < 0 else returned


class DriverError(Exception):
    """An error that ends the container, with the exit code that identifies it: usually one that needs a person."""

    def __init__(self, reason: str, code: int = ENVIRONMENT) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
