"""Run files and options as callers give them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union, cast

from .errors import UsageError
from .types import RunFile

#: A path, the text of a run file, or its options as a dict.
RunSource = Union[str, "os.PathLike[str]", RunFile, Mapping[str, Any]]
#: Values by their paths, or the texts `path=value` of `--set`.
Overrides = Union[Mapping[str, object], Sequence[str]]


def is_path(run: RunSource) -> bool:
    """Whether a run is given as the path of its file."""
    if isinstance(run, os.PathLike):
        return True
    # Options have a colon behind their names.
    return isinstance(run, str) and "\n" not in run and (":" not in run or run.endswith((".yaml", ".yml", ".json")))


def text_of(run: RunSource) -> str:
    """The text of a run file; raises UsageError when it cannot be read."""
    if is_path(run):
        return read(cast("str | os.PathLike[str]", run))
    # JSON is YAML.
    return run if isinstance(run, str) else json.dumps(run)


def folder_of(run: RunSource) -> Path:
    """The folder that paths in a run file count from: that of the file, else the working directory."""
    return Path(cast("str | os.PathLike[str]", run)).resolve().parent if is_path(run) else Path.cwd()


def read(path: str | os.PathLike[str]) -> str:
    """The text of a file; raises UsageError when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{os.fspath(path)}: must be a readable file, got {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{os.fspath(path)}: must be text in UTF-8, got byte {error.object[error.start]:#04x}; check the path") from error


def listed(items: Sequence[str] | None) -> list[str] | None:
    """One text or several as a list; None stays None."""
    return None if items is None else [items] if isinstance(items, str) else list(items)


def own_options(after: Sequence[str] | None, preemptible: bool) -> list[str]:
    """Options of the file that have a name of their own here."""
    first = listed(after)
    return [*([] if first is None else [f"after={json.dumps(first)}"]), *(["preemptible=true"] if preemptible else [])]


def set_options(given: Overrides | None) -> list[str]:
    """Options as the control plane takes them: texts as they are, values as JSON."""
    if isinstance(given, Mapping):
        return [f"{path}={json.dumps(value)}" for path, value in given.items()]
    return listed(given) or []
