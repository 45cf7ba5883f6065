"""Finds the newest complete checkpoint, for a restart in place, and the argument with which a trainer goes on from one, for programs that
take it and that were not given one. The trainer verifies a checkpoint before loading.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence

from slipway_driver.log import log
from slipway_driver.tables import NAMES_NEWEST, STEP_IN_PATH, TRAINER_CHECKPOINTS
from slipway_s3 import S3Client, join_uri, parse_uri

if TYPE_CHECKING:
    from slipway_driver.attempt import Attempt


#: Marker of the built-in trainer, below the folder of checkpoints.
COMMITTED = "step-*/COMMITTED.json"
MAX_DIGITS = 12

Facts = Callable[[], Dict[str, Any]]


def newest_marker(names: Iterable[str], marker: str) -> Optional[str]:
    """The name with the highest step among `names`, relative to the folder of checkpoints, that match the pattern; None if none does."""
    pattern = re.compile("[^/]*".join(map(re.escape, marker.split("*"))) + r"\Z")
    steps = {name: step for name in names if pattern.match(name) for step in [step_in(name)] if step is not None}
    return max(steps, key=lambda name: steps[name]) if steps else None


def step_in(path: str) -> Optional[int]:
    """The step in the path of a marker; 0 without a number, None if the number is too long."""
    found = next(filter(None, (re.search(each, path) for each in STEP_IN_PATH)), None)
    digits = found.group(1) if found else "0"
    return int(digits) if len(digits) <= MAX_DIGITS else None


def newest_checkpoint(uri: str, client: "S3Client | None" = None, marker: str = COMMITTED) -> str:
    """URI or path of the folder of the newest checkpoint; '' if there is none."""
    if not uri:
        return ""
    names_newest = marker.rpartition("/")[2] == NAMES_NEWEST
    if uri.startswith("s3://"):
        client, (bucket, prefix) = client or S3Client(), parse_uri(uri.rstrip("/") + "/")
        names = [item.key[len(prefix) :] for item in client.list(bucket, prefix)]
        found = newest_marker(names, marker)
        if found and names_newest:
            found = _beside(found, client.get(bucket, prefix + found), names)
    else:
        root = Path(uri)
        found = newest_marker((path.relative_to(root).as_posix() for path in root.glob(marker)), marker)
        if found and names_newest:
            place = (root / found).parent
            found = _beside(found, (root / found).read_bytes(), [path.relative_to(root).as_posix() for path in place.glob("*/*")])
    return "" if not found else join_uri(uri, found.rpartition("/")[0]).rstrip("/")


def _beside(found: str, text: bytes, names: Iterable[str]) -> str:
    """A name in the folder that the marker `found` names with its text; "" if there is none."""
    name = text.decode("utf-8", "replace").strip()
    folder = found[: -len(NAMES_NEWEST)] + name + "/"
    is_name = re.fullmatch(r"[\w.=-]{1,255}", name, re.ASCII) and step_in(name) is not None
    return next((each for each in names if each.startswith(folder)), "") and folder if is_name else ""


def noticing(attempt: Attempt, facts: Facts) -> Facts:
    """`facts`, which looks for checkpoints below the folder in which they are expected whenever it is called, until there are any, and logs
    once where the first one is: such a run would be taken for one that saves nothing.

    Only for the marker that comes with `progress.format`; a marker of the run file is a decision.
    """
    job, folder = attempt.job, Path(attempt.environ.get("SLIPWAY_CHECKPOINT_URI") or "/nonexistent")
    usual = TRAINER_CHECKPOINTS.get(job.progress_format)
    if usual is None or job.committed_marker != usual.marker or job.checkpoint_mode != "managed":
        return facts
    marker, searching = usual.marker, [True]

    def noticed() -> Dict[str, Any]:
        # Files come and go while the trainer saves.
        with contextlib.suppress(OSError):
            found = next(folder.rglob(marker), None) if searching[0] else None
            searching[0] = searching[0] and found is None
            if found and not newest_checkpoint(str(folder), marker=marker):
                place = found.relative_to(folder)
                # Numbers in the folders in front of the marker differ between starts.
                folders = [re.sub(r"\d+", "*", part) for part in place.parts[: -len(marker.split("/"))]]
                log(
                    "no checkpoint is seen: %s is below the folder in which those of format %s are looked for; "
                    'set checkpoints.committedMarker: "%s"' % (place.as_posix(), job.progress_format, "/".join([*folders, marker]))
                )
        return facts()

    return noticed


MAX_BYTES = 1024 * 1024
_MODULE = re.compile(r"""(?:\s-m |run_module\(["'])([A-Za-z_][\w.]*)""")


def resume_words(trainer: str, entry_point: str, arguments: Sequence[str], folder: Path, checkpoint: str) -> List[str]:
    """The words to add to a command. Logs them, or why there are none although the trainer has such an argument.

    :param trainer: `progress.format` of the run file
    :param checkpoint: SLIPWAY_RESUME_FROM; trainers read folders, not S3
    """
    facts = TRAINER_CHECKPOINTS.get(trainer)
    if facts is None or not facts.argument or not checkpoint or checkpoint.startswith("s3://"):
        return []
    names = [word.partition("=")[0] for word in facts.argument if not word.startswith("{")]
    if {_spelled(name) for name in names} & {_spelled(given.partition("=")[0]) for given in arguments}:
        return []
    if not re.search(facts.taken_by, _text_of(entry_point, folder)):
        log(
            "resume from %s: %s shows no sign that it takes %s, so it must read SLIPWAY_RESUME_FROM itself"
            % (checkpoint, entry_point, " ".join(names))
        )
        return []
    last = facts.marker.rpartition("/")[2]
    marker = newest_marker((path.name for path in Path(checkpoint).glob(last)), last)
    if marker is None:
        log("resume from %s: it has no %s on this host, so no argument names it" % (checkpoint, last))
        return []
    places = {"checkpoint": checkpoint, "parent": os.path.dirname(checkpoint), "marker": os.path.join(checkpoint, marker)}
    words = [word.format(**places) for word in facts.argument]
    log("resume from %s: with %s" % (checkpoint, " ".join(words)))
    return words


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
