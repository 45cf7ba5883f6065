"""Command line options whose values are checked together, so that all errors are reported at once. Does not import PyTorch.

lib/core/catalog/builtin-arguments.json lists the options with their kinds for the checks before a launch.
`npm run trainer:arguments` writes it.
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, Protocol

from slipway_trainer.exits import or_list

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Kind(Protocol):
    """What an option accepts. Its dataclass fields and its name are what the list for the launch contains."""

    def read(self, text: str) -> Any:
        """The value, or None if the text is none."""

    def must(self) -> str:
        """The requirement, after `must be`."""


@dataclass(frozen=True)
class Text:
    """Any text."""

    def read(self, text: str) -> str:
        return text

    def must(self) -> str:
        return "text"


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    at_least: int = 0

    def read(self, text: str) -> int | None:
        return int(text) if _WHOLE.fullmatch(text) and int(text) >= self.at_least else None

    def must(self) -> str:
        return f"a whole number of at least {self.at_least}"


@dataclass(frozen=True)
class Number:
    """A finite number, above or at least a limit, and below or at most another."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def read(self, text: str) -> float | None:
        found = float(text) if _NUMBER.fullmatch(text) else math.nan
        lowest = found >= self.at_least if self.at_least is not None else self.above is None or found > self.above
        highest = found <= self.at_most if self.at_most is not None else self.below is None or found < self.below
        return found if math.isfinite(found) and lowest and highest else None

    def must(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"a number from {self.at_least:g} to {self.at_most:g}"
        words = {"of at least": self.at_least, "above": self.above, "of at most": self.at_most, "below": self.below}
        return "a number " + " and ".join(f"{word} {limit:g}" for word, limit in words.items() if limit is not None)


@dataclass(frozen=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def read(self, text: str) -> str | None:
        return text if text in self.words else None

    def must(self) -> str:
        return or_list(self.words)


class _Malformed(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    """Collects errors instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise _Malformed(message)


class Options:
    """The options of a program. Values stay text until `read` checks all of them."""

    def __init__(self, program: str, description: str | None) -> None:
        self._parser = _Parser(prog=program, description=description, allow_abbrev=False)
        self._kinds: dict[str, Kind | None] = {}
        self._defaults: dict[str, Any] = {}

    def add(self, name: str, kind: Kind, default: Any, help: str | None = None) -> None:
        """Adds an option with a value. `name`: without dashes."""
        self._kinds[name], self._defaults[name] = kind, default
        choices = "{" + ",".join(kind.words) + "}" if isinstance(kind, OneOf) else None
        self._parser.add_argument(f"--{name}", metavar=choices, help=help)

    def add_flag(self, name: str, help: str) -> None:
        """Adds an option without a value."""
        self._kinds[name], self._defaults[name] = None, False
        self._parser.add_argument(f"--{name}", action="store_true", help=help)

    def described(self) -> dict[str, dict[str, Any]]:
        """Kind and limits of each option, by name."""
        return {
            name: {"kind": "flag"}
            if kind is None
            else {"kind": type(kind).__name__.lower()} | {key: value for key, value in asdict(kind).items() if value is not None}
            for name, kind in self._kinds.items()
        }

    def read(self, words: Sequence[str], issues: list[str]) -> argparse.Namespace:
        """The values, with underscores in their names, and the text of those that were given as `written`; the last one if an option is
        repeated. Adds errors to `issues`; an option with an error has its default. Unknown options are errors, so that misspelled names are
        noticed."""
        try:
            given, unknown = self._parser.parse_known_args(list(words))
        except _Malformed as error:
            issues.append(f"code.arguments: must be options with their values, got {' '.join(words)} ({error}); correct it")
            given, unknown = self._parser.parse_known_args([])
        issues += self._unknown(unknown)
        found, written = argparse.Namespace(), {}
        for name, kind in self._kinds.items():
            text = getattr(given, _attribute(name))
            if kind is not None and text is not None:
                written[name] = text
            setattr(found, _attribute(name), self._value(name, kind, text, issues))
        found.written = written
        return found

    def _unknown(self, words: Sequence[str]) -> Iterator[str]:
        """Errors for words that belong to no option: unknown options with their values, and values of flags."""
        for number, word in enumerate(words):
            name = word.removeprefix("--").partition("=")[0]
            if word.startswith("--"):
                yield f"code.arguments.{name}: must be an argument of {self._parser.prog}, got {name}; correct or remove it"
            elif number == 0 or not words[number - 1].startswith("--"):
                yield f"code.arguments: must be options with their values, got {word}; correct or remove it"

    def _value(self, name: str, kind: Kind | None, text: Any, issues: list[str]) -> Any:
        if kind is None or text is None:
            return text if kind is None else self._defaults[name]
        value = kind.read(text)
        if value is not None:
            return value
        issues.append(f"code.arguments.{name}: must be {kind.must()}, got {text or repr(text)}; correct or remove it")
        return self._defaults[name]


def _attribute(name: str) -> str:
    return name.replace("-", "_")
