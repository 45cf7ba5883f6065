"""Exit codes of a container and what each means to the control plane (contract: runtime, "Exit codes and the failure file")."""

from __future__ import annotations

DONE = 0
HANG = 70
CHECKPOINT = 71
DATA = 72
LOSS = 73
EFA = 74
TRY_AGAIN = 75
HAND_OVER = 76
ENVIRONMENT = 77
OUT_OF_MEMORY = 137

CLASSES = {
    DONE: "done",
    HANG: "hang",
    CHECKPOINT: "checkpoint",
    DATA: "data",
    LOSS: "loss",
    EFA: "efa",
    TRY_AGAIN: "try-again",
    HAND_OVER: "hand-over",
    ENVIRONMENT: "environment",
}


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
