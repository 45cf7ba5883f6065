"""An error whose text is written where it is raised says what to do: `<option>: <what must hold>, got <value>; <what to do>`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TRAINER = Path(__file__).parents[2] / "containers/trainer/slipway_trainer"
#: Errors that a person reads as the reason of a run that failed.
READ_BY_PEOPLE = {"InvalidRun", "DataFailed", "CheckpointFailed", "LossFailed"}


def _raised(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every error with a text of its own; what is filled in is `{}`."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
            continue
        name = node.exc.func.attr if isinstance(node.exc.func, ast.Attribute) else getattr(node.exc.func, "id", "")
        if name not in READ_BY_PEOPLE:
            continue
        for part in ast.walk(node.exc.args[0]):
            if isinstance(part, ast.JoinedStr):
                yield node.lineno, "".join(str(piece.value) if isinstance(piece, ast.Constant) else "{}" for piece in part.values)
        if isinstance(node.exc.args[0], ast.Constant):
            yield node.lineno, str(node.exc.args[0].value)


def test_a_message_is_found_whatever_it_is_made_of() -> None:
    source = 'raise InvalidRun(f"a: must be {b}, got {c}; " "write b")\nraise exits.LossFailed("d")\nraise ValueError("e")\n'
    assert list(_raised(source)) == [(1, "a: must be {}, got {}; write b"), (2, "d")]


@pytest.mark.parametrize("file", sorted(TRAINER.rglob("*.py")), ids=lambda file: str(file.relative_to(TRAINER)))
def test_every_error_says_what_to_do(file: Path) -> None:
    lacking = [f"{line}: {text}" for line, text in _raised(file.read_text()) if "; " not in text]
    assert lacking == []
