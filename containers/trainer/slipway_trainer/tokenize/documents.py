"""Documents of a folder, in an order that does not depend on the machine."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Document(NamedTuple):
    """One document; (`file`, `line`) is its place, from which a restart continues."""

    file: int
    line: int
    text: bytes


def input_files(folder: Path) -> list[Path]:
    """All files below `folder`, by name; hidden ones (download leftovers) are left out."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def share(files: Sequence[Path], host: int, hosts: int) -> list[Path]:
    """The files of one of several hosts that all see every file."""
    return list(files[host::hosts])


def documents(files: Sequence[Path], start: tuple[int, int], text_key: str) -> Iterator[Document]:
    """Documents from place `start` on: a line of a .jsonl file is one (its `text_key`), any other file is one as a whole."""
    first_file, first_line = start
    for number in range(first_file, len(files)):
        skip = first_line if number == first_file else 0
        if files[number].suffix == ".jsonl":
            yield from _lines(files[number], number, skip, text_key)
        elif skip == 0:
            yield Document(number, 0, files[number].read_bytes())


def _lines(file: Path, number: int, skip: int, text_key: str) -> Iterator[Document]:
    with file.open("rb") as handle:
        for line_number, line in enumerate(handle):
            if line_number >= skip and line.strip():
                yield Document(number, line_number, str(json.loads(line)[text_key]).encode("utf-8"))
