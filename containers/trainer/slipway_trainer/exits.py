"""How the trainer ends: the codes of the runtime contract, and the errors that carry them."""

import sys

CHECKPOINT = 71
DATA = 72
LOSS = 73
TRY_AGAIN = 75
HAND_OVER = 76
ENVIRONMENT = 77


class TrainerError(Exception):
    """A reason to leave, with the exit code that tells the control plane what to do about it."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Settings(TrainerError):
    """The run asks for something that cannot be; a person must look. Carries every complaint at once."""

    def __init__(self, issues: list[str]) -> None:
        super().__init__(ENVIRONMENT, "; ".join(issues))


class CheckpointFailed(TrainerError):
    """A checkpoint could not be written or read."""

    def __init__(self, reason: str) -> None:
        super().__init__(CHECKPOINT, reason)


class DataFailed(TrainerError):
    """Training data could not be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(DATA, reason)


class LossFailed(TrainerError):
    """The loss is not finite, or jumped beyond what the policy allows."""

    def __init__(self, reason: str) -> None:
        super().__init__(LOSS, reason)


def complain(error: TrainerError) -> int:
    """Writes the reason where the driver looks for the first error and returns the exit code."""
    sys.stderr.write(f"slipway_trainer: error: {error}\n")
    sys.stderr.flush()
    return error.code
