"""Exit codes of the trainer according to the runtime contract, and the exceptions that carry them."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

CHECKPOINT = 71
DATA = 72
LOSS = 73
TRY_AGAIN = 75
HAND_OVER = 76
ENVIRONMENT = 77


class TrainerError(Exception):
    """An error that ends the trainer, with its exit code."""

    code = TRY_AGAIN


class InvalidRun(TrainerError):
    """The settings of the run are invalid."""

    code = ENVIRONMENT

    def __init__(self, *issues: str) -> None:
        super().__init__("; ".join(issues))
        self.issues = issues


class CheckpointFailed(TrainerError):
    """A checkpoint could not be written or read."""

    code = CHECKPOINT


class DataFailed(TrainerError):
    """Training data could not be read."""

    code = DATA


class LossFailed(TrainerError):
    """The loss is not finite, or has increased more than the loss policy allows."""

    code = LOSS


#: A limit of the trainer: whether the run is beyond it, the option as in the run file, what must hold, the value, and what to do.
Limit = tuple[bool, str, str, Any, str]


def refused(limits: Iterable[Limit]) -> list[str]:
    """Messages of the limits that a run is beyond. The checks before a launch say the same of it (lib/core/rules/model)."""
    return [f"{option}: must {must}, got {_shown(found)}; {fix}" for is_beyond, option, must, found, fix in limits if is_beyond]


def or_list(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(value: Any) -> str:
    """A value as in the run file."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def complain(error: TrainerError) -> int:
    """Prints the reason in the format that the driver recognizes as the first error, and returns the exit code."""
    sys.stderr.write(f"slipway_trainer: error: {error}\n")
    sys.stderr.flush()
    return error.code


def end_with(run: Callable[[], int]) -> NoReturn:
    """Ends the program with the exit code of `run`, or of its TrainerError."""
    try:
        sys.exit(run())
    except TrainerError as error:
        sys.exit(complain(error))
