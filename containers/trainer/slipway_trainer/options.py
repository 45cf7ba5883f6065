"""Command line options whose values are checked together, so that all errors are reported at once. Does not import PyTorch.

lib/core/catalog/builtin-arguments.json lists the options with their kinds for the checks before a launch.
`npm run trainer:arguments` writes it.
"""

import argparse
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from slipway_trainer.exits import or_list

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Text:
    """Any text, and the base of other kinds. Fields and name of a kind are what the list for the launch contains."""

    def read(self, text: str) -> Any:
        """The value, or None if the text is none."""
        return text

    def must(self) -> str:
        """The requirement, after `must be`."""
        return "text"


@dataclass(frozen=True)
class Whole(Text):
    """A whole number."""

    at_least: int = 0

    def read(self, text: str) -> int | None:
        return int(text) if _WHOLE.fullmatch(text) and int(text) >= self.at_least else None

    def must(self) -> str:
        return f"a whole number of at least {self.at_least}"


@dataclass(frozen=True)
class Number(Text):
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
class OneOf(Text):
    """One of some words."""

    words: tuple[str, ...]

    def read(self, text: str) -> str | None:
        return text if text in self.words else None

    def must(self) -> str:
        return or_list(self.words)


class Option(NamedTuple):
    """An option. `name`: without dashes; `kind`: None for a flag."""

    name: str
    kind: Text | None
    default: Any = False
    help: str | None = None


class Options:
    """The options of a program. Values stay text until `read` checks all of them."""

    def __init__(self, program: str, description: str | None, options: Iterable[Option]) -> None:
        self._parser = argparse.ArgumentParser(prog=program, description=description, allow_abbrev=False, exit_on_error=False)
        self._options = list(options)
        for name, kind, _default, help in self._options:
            if kind is None:
                self._parser.add_argument(f"--{name}", action="store_true", help=help)
            else:
                choices = "{" + ",".join(kind.words) + "}" if isinstance(kind, OneOf) else None
                self._parser.add_argument(f"--{name}", metavar=choices, help=help)

    def described(self) -> dict[str, dict[str, Any]]:
        """Kind and limits of each option, by name."""
        found: dict[str, dict[str, Any]] = {}
        for name, kind, *_rest in self._options:
            limits = {} if kind is None else {key: value for key, value in asdict(kind).items() if value is not None}
            found[name] = {"kind": "flag" if kind is None else type(kind).__name__.lower()} | limits
        return found

    def read(self, words: Sequence[str], issues: list[str]) -> argparse.Namespace:
        """The values, with underscores in their names, and the text of those that were given as `written`; the last one if an option is
        repeated. Adds errors to `issues`; an option with an error has its default. Unknown options are errors, so that misspelled names are
        noticed."""
        try:
            given, unknown = self._parser.parse_known_args(list(words))
        except argparse.ArgumentError as error:
            issues.append(f"code.arguments: must be options with their values, got {' '.join(words)} ({error}); correct it")
            given, unknown = self._parser.parse_known_args([])
        for number, word in enumerate(unknown):
            # Unknown options with their values, and values of flags.
            name = word.removeprefix("--").partition("=")[0]
            if word.startswith("--"):
                issues.append(f"code.arguments.{name}: must be an argument of {self._parser.prog}, got {name}; correct or remove it")
            elif number == 0 or not unknown[number - 1].startswith("--"):
                issues.append(f"code.arguments: must be options with their values, got {word}; correct or remove it")
        found = argparse.Namespace(written={})
        for name, kind, default, _help in self._options:
            attribute = name.replace("-", "_")
            value = text = getattr(given, attribute)
            if kind is not None and text is not None:
                found.written[name], value = text, kind.read(text)
                if value is None:
                    issues.append(f"code.arguments.{name}: must be {kind.must()}, got {text or repr(text)}; correct or remove it")
            setattr(found, attribute, default if value is None else value)
        return found
