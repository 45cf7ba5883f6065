"""The argument with which a trainer goes on from a checkpoint, for programs that take it and that were not given one."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import List, Sequence, Tuple

from slipway_driver.newest_checkpoint import newest_marker
from slipway_driver.tables import TRAINER_CHECKPOINTS

MAX_BYTES = 1024 * 1024
_MODULE = re.compile(r"""(?:\s-m |run_module\(["'])([A-Za-z_][\w.]*)""")


def resume_words(trainer: str, entry_point: str, arguments: Sequence[str], folder: Path, checkpoint: str) -> Tuple[List[str], str]:
    """The words to add to a command, and why there are none although the trainer has such an argument ("" otherwise).

    :param trainer: `progress.format` of the run file
    :param checkpoint: SLIPWAY_RESUME_FROM; trainers read folders, not S3
    """
    facts = TRAINER_CHECKPOINTS.get(trainer)
    if facts is None or not facts.argument or not checkpoint or checkpoint.startswith("s3://"):
        return [], ""
    names = [word.partition("=")[0] for word in facts.argument if not word.startswith("{")]
    if {_spelled(name) for name in names} & {_spelled(given.partition("=")[0]) for given in arguments}:
        return [], ""
    if not re.search(facts.taken_by, _text_of(entry_point, folder)):
        return [], "%s shows no sign that it takes %s, so it must read SLIPWAY_RESUME_FROM itself" % (entry_point, " ".join(names))
    last = facts.marker.rpartition("/")[2]
    marker = newest_marker((path.name for path in Path(checkpoint).glob(last)), last)
    if marker is None:
        return [], "%s has no %s on this host, so no argument names it" % (checkpoint, last)
    places = {"checkpoint": checkpoint, "parent": os.path.dirname(checkpoint), "marker": os.path.join(checkpoint, marker)}
    return [word.format(**places) for word in facts.argument], ""


def _spelled(name: str) -> str:
    """Programs take both spellings of an option."""
    return name.replace("_", "-")


def _text_of(entry_point: str, folder: Path) -> str:
    """The text of the program, with the modules that it starts. A shell script counts if it passes its arguments on, with its scripts."""
    if not entry_point.endswith((".py", ".sh")):
        return entry_point + "\n" + _read(_module_file(entry_point, folder))
    text = _read(folder / entry_point)
    modules = [_module_file(name, folder) for name in _MODULE.findall(text)]
    if entry_point.endswith(".py"):
        return "\n".join([text, *map(_read, modules)])
    if not re.search(r"\$[@*]|\$\{[@*]", text):
        return ""
    scripts = [folder / name for name in re.findall(r"[\w./-]+\.py\b", text)]
    return "\n".join([text.replace("\\\n", " "), *map(_read, [*scripts, *modules])])


def _module_file(module: str, folder: Path) -> Path:
    own = folder.joinpath(*module.split("."))
    for path in (own.with_suffix(".py"), own / "__main__.py"):
        if path.is_file():
            return path
    # Only the outermost package is looked for: finding an inner one would import the outer ones.
    outer, *inner = module.split(".")
    found = importlib.util.find_spec(outer)
    places = list(found.submodule_search_locations or []) if found else []
    return Path(places[0]).joinpath(*inner).with_suffix(".py") if places and inner else Path(os.devnull)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
