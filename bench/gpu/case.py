"""One check of the GPU suite, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from machine import Machine


@dataclass(frozen=True)
class Found:
    """`figure`: what was measured, for people; `holds`: whether it is what must be, None where nothing is asked."""

    figure: str
    holds: bool | None


@dataclass(frozen=True)
class Case:
    """`lacks`: why this machine cannot run it, or an empty string; `run` gets a folder of its own."""

    name: str
    must: str
    lacks: Callable[[Machine], str]
    run: Callable[[Machine, Path], Found]


@dataclass(frozen=True)
class Outcome:
    """`state`: ok, failed, measured or skipped."""

    name: str
    must: str
    state: str
    text: str


def outcome(case: Case, machine: Machine, folder: Path) -> Outcome:
    """Runs a case where it can run. An error of any kind is a failure of this case alone."""
    lacking = case.lacks(machine)
    if lacking:
        return Outcome(case.name, case.must, "skipped", lacking)
    folder.mkdir(parents=True)
    try:
        found = case.run(machine, folder)
    except Exception as error:
        return Outcome(case.name, case.must, "failed", f"{type(error).__name__}: {error}".strip().replace("\n", " ")[-400:])
    state = {None: "measured", True: "ok", False: "failed"}[found.holds]
    return Outcome(case.name, case.must, state, found.figure)
