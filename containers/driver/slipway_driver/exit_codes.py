"""Exit codes of a container and what each means to the control plane (docs/reference/runtime.md)."""

from __future__ import annotations

from slipway_driver.tables import CLASSES, EXIT_CODES

DONE = EXIT_CODES["DONE"]
HANG = EXIT_CODES["HANG"]
CHECKPOINT = EXIT_CODES["CHECKPOINT"]
DATA = EXIT_CODES["DATA"]
LOSS = EXIT_CODES["LOSS"]
EFA = EXIT_CODES["EFA"]
TRY_AGAIN = EXIT_CODES["TRY_AGAIN"]
HAND_OVER = EXIT_CODES["HAND_OVER"]
ENVIRONMENT = EXIT_CODES["ENVIRONMENT"]
#: Left by SIGKILL, the kernel's out-of-memory killer among others.
OUT_OF_MEMORY = 137


def class_of(code: int) -> str:
    """The failure class of an exit code; every code that is not ours is the user's own."""
    return CLASSES.get(code, "user-code")


def shell_code(returned: int) -> int:
    """What a shell would call the end that `subprocess` gives as -N for signal N."""
    return 128 - returned if returned < 0 else returned


class DriverError(Exception):
    """A reason to end the container before or instead of the script, with the exit code that says so."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
