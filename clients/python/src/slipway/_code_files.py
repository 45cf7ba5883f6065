"""The files of a code folder that belong into its archive; test/clients/archive.test.ts compares them with those of the command line."""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path

from ._code_constants import ENVIRONMENT_MARKERS, LEFT_OUT, LOOP, MAX_ENTRIES, MAX_MIB, NOT_UTF8, NOWHERE, UNREADABLE
from ._plain_text import plain_line


def code_files(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the files below `folder`, sorted, and why it cannot be packed. A link stands for what it leads to, within the repository
    of the folder, or within the folder itself when it is in no repository; links to other places are left out, with a warning."""
    top = os.path.realpath(folder)
    walk = _Walk(os.fspath(folder), _repository_of(Path(top)))
    walk.visit("", (top,))
    for name in sorted(walk.outside):
        warnings.warn(f"code.source: {plain_line(name, 80)} leads out of its repository and is left out", stacklevel=3)
    return sorted(walk.files, key=_by_name), walk.problems()


def _by_name(name: str) -> bytes:
    # JavaScript sorts by UTF-16 code units.
    return name.encode("utf-16-be", "replace")


def _repository_of(top: Path) -> str:
    return os.fspath(next((at for at in (top, *top.parents) if (at / ".git").exists()), top))


def _is_within(folder: str, file: str) -> bool:
    return os.path.commonpath((folder, file)) == folder


class _Walk:
    def __init__(self, folder: str, root: str) -> None:
        self.files: list[str] = []
        self.outside: list[str] = []
        self._folder, self._root = folder, root
        self._refused: list[tuple[str, tuple[str, str]]] = []
        self._entries = self._bytes = 0

    def visit(self, at: str, around: tuple[str, ...]) -> None:
        """`around`: the folders around, the one at `at` last, with links resolved."""
        for entry in self._entries_of(at):
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                return
            self._take(entry, f"{at}/{entry.name}" if at else entry.name, around)

    def _entries_of(self, at: str) -> Iterable[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._folder, at)) as entries:
                return list(entries)
        except OSError:
            self._refused.append((at or ".", UNREADABLE))
            return []

    def _take(self, entry: os.DirEntry[str], name: str, around: tuple[str, ...]) -> None:
        # Surrogates stand for bytes that are not UTF-8.
        if any(character == "\ufffd" or "\ud800" <= character <= "\udfff" for character in entry.name):
            self._refused.append((name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), NOT_UTF8))
        elif entry.is_symlink():
            self._follow(name, around)
        elif entry.is_dir():
            self._enter(name, (*around[:-1], os.path.join(around[-1], entry.name)))
        elif entry.is_file():
            self._add(name)

    def _follow(self, name: str, around: tuple[str, ...]) -> None:
        if os.path.basename(name) in LEFT_OUT:
            return
        try:
            found = os.stat(os.path.join(self._folder, name))
        except OSError as error:
            why = {errno.ELOOP: LOOP, errno.EACCES: UNREADABLE}.get(error.errno or 0, NOWHERE)
            self._refused.append((name, why))
            return
        target = os.path.realpath(os.path.join(self._folder, name))
        if not _is_within(self._root, target):
            self.outside.append(name)
        elif stat.S_ISREG(found.st_mode):
            self._add(name)
        elif not stat.S_ISDIR(found.st_mode) or os.path.basename(target) in LEFT_OUT:
            return
        elif any(_is_within(target, folder) for folder in around):
            self._refused.append((name, LOOP))
        else:
            self._enter(name, (*around, target))

    def _enter(self, name: str, around: tuple[str, ...]) -> None:
        at = os.path.join(self._folder, name)
        if os.path.basename(name) in LEFT_OUT or any(os.path.exists(os.path.join(at, marker)) for marker in ENVIRONMENT_MARKERS):
            return
        self.visit(name, around)

    def _add(self, name: str) -> None:
        file = os.path.join(self._folder, name)
        if name.endswith(".pyc"):
            return
        if os.access(file, os.R_OK):
            self.files.append(name)
            self._bytes += os.stat(file).st_size
        else:
            self._refused.append((name, UNREADABLE))

    def problems(self) -> list[str]:
        """A message for each."""
        mib = -(-self._bytes // 2**20)
        named = [(must, name, fix) for name, (must, fix) in sorted(self._refused, key=lambda one: _by_name(one[0]))]
        if self._entries > MAX_ENTRIES:
            named.append((f"must contain at most {MAX_ENTRIES} files", "more", "keep data in a channel"))
        if mib > MAX_MIB:
            named.append((f"must contain at most {MAX_MIB} MiB", f"{mib} MiB", "keep data in a channel"))
        return [f"code.source: {must}, got {plain_line(got, 80)}; {fix}" for must, got, fix in named]
