"""Documents of a folder, in an order that does not depend on the machine."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from slipway_trainer.exits import DataFailed, Settings
from slipway_trainer.tokenize.examples import KINDS, Example, ExampleReader, shape_of


class Document(NamedTuple):
    """One document; (`file`, `line`) is its place, from which a restart continues."""

    file: int
    line: int
    text: bytes


class Examples(NamedTuple):
    """The examples of one line of post-training data, and its place."""

    file: int
    line: int
    examples: list[Example]


class _Line(NamedTuple):
    number: int
    content: bytes
    #: File and line as people count them.
    place: str


#: Suffixes of files with one JSON object a line. Any other text is one document; either may be compressed with gzip (`.gz`).
LINES = (".jsonl", ".json")
#: How files begin that hold no text, or text in a form that is not read: gzip, zstd, xz, bzip2, zip, parquet, Avro, ORC.
_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\x03\x04", b"PAR1", b"Obj\x01", b"ORC")
_LOOK_BYTES = 8192


def _kind(path: Path) -> str:
    """The suffix that says how a file is read, without a `.gz` behind it."""
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _is_marker(path: Path) -> bool:
    return path.name.startswith("_") and not path.suffix


def _is_binary(path: Path) -> bool:
    try:
        with _opened(path) as handle:
            head = handle.read(_LOOK_BYTES)
    except gzip.BadGzipFile:
        return True
    return b"\0" in head or head.startswith(_MAGIC)


def input_files(folder: Path) -> list[Path]:
    """All files below `folder`, by name; hidden ones (download leftovers) and markers such as Spark's _SUCCESS are left out.

    Raises Settings naming binary files: as raw text they would be noise in the training data.
    """
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".") and not _is_marker(path))
    files = sorted(found, key=lambda path: path.relative_to(folder).as_posix())
    other = [path.relative_to(folder).as_posix() for path in files if _is_binary(path)]
    if other:
        listed = ", ".join(other[:5]) + (f" and {len(other) - 5} more" if len(other) > 5 else "")
        must = "must hold text, .jsonl or .json files, or those compressed with gzip (.gz)"
        raise Settings([f"--data-channel: {must}, got {listed}; convert or remove them"])
    return files


def share(files: Sequence[Path], host: int, hosts: int) -> list[Path]:
    """The files of one of several hosts that all see every file."""
    return list(files[host::hosts])


def documents(files: Sequence[Path], start: tuple[int, int], text_key: str) -> Iterator[Document]:
    """Documents from place `start` on: a line of a .jsonl or .json file is one (its `text_key`), any other file is one as a whole.

    Raises DataFailed naming file and line of what is no document.
    """
    first_file, first_line = start
    for number in range(first_file, len(files)):
        skip = first_line if number == first_file else 0
        if _kind(files[number]) in LINES:
            for line in _lines(files[number], skip):
                yield Document(number, line.number, _text(line.content, text_key, line.place).encode("utf-8"))
        elif skip == 0:
            with _opened(files[number]) as handle:
                yield Document(number, 0, handle.read())


def _opened(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def kind_of(files: Sequence[Path]) -> str:
    """What the shards of these files hold: `text` to train on as it is, `sft` or `dpo`. The first line with an object says it."""
    lined = (file for file in files if _kind(file) in LINES)
    first = next((line for file in lined for line in _lines(file, 0)), None)
    content = _parsed(first.content, first.place) if first is not None else None
    shape = shape_of(content) if isinstance(content, dict) else None
    return KINDS[shape] if shape is not None else "text"


def examples(files: Sequence[Path], start: tuple[int, int], reader: ExampleReader) -> Iterator[Examples]:
    """The examples of lines from place `start` on. Raises DataFailed naming file and line of what is none."""
    for number in range(start[0], len(files)):
        file = files[number]
        if _kind(file) not in LINES:
            raise DataFailed(f"{file.name}: must be a .jsonl or .json file of one object a line like the first one; move it elsewhere")
        for line in _lines(file, start[1] if number == start[0] else 0):
            yield Examples(number, line.number, reader.read(_parsed(line.content, line.place), line.place))


def _lines(file: Path, skip: int) -> Iterator[_Line]:
    """The lines of a file that are not blank, without the first `skip`."""
    with _opened(file) as handle:
        for number, content in enumerate(handle):
            if number >= skip and content.strip():
                yield _Line(number, content, f"{file.name}:{number + 1}")


def _parsed(content: bytes, place: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise DataFailed(f"{place}: must be one JSON object a line ({error})") from error


def _text(content: bytes, text_key: str, place: str) -> str:
    found = _parsed(content, place)
    text = found.get(text_key) if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise DataFailed(f"{place}: must have text under {text_key!r}, got {json.dumps(text)}; remove the line, or give --text-key")
    return text
