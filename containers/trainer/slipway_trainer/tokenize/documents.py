"""Reads the documents of a folder in an order that does not depend on the machine."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from slipway_trainer.exits import DataFailed, InvalidRun
from slipway_trainer.fetch.repository import SOURCE_FILE
from slipway_trainer.tokenize.examples import KINDS, Example, ExampleReader
from slipway_trainer.tokenize.formats import shape_of
from slipway_trainer.tokenize.rows import DESCRIPTIONS, TABLES, UNREADABLE, has_rows, kind, opened, readable, rows
from slipway_trainer.tokenize.tokenizers import Tokenizer


class Document(NamedTuple):
    """A document; a restart continues after its position (`file`, `line`)."""

    file: int
    line: int
    text: bytes


class Examples(NamedTuple):
    """The examples of one line of post-training data, and its position."""

    file: int
    line: int
    examples: list[Example]


#: First bytes of files without readable text: gzip, zstd, xz, bzip2, zip, parquet, Avro, ORC.
_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\x03\x04", b"PAR1", b"Obj\x01", b"ORC")
_HEAD_BYTES = 8192
#: Suffixes of tables that are text, whose separators and headings would be trained.
_SEPARATED = (".csv", ".tsv")
#: Results of its `map` and `filter`, which it keeps beside the data set that they were made from.
_CACHED = re.compile(r"cache-[0-9a-f]{8,}(?:_\d+_of_\d+)?\.arrow")
#: Folder of the log of a Delta Lake table.
_DELTA = "_delta_log"


def _is_binary(path: Path) -> bool:
    if path.suffix in TABLES:
        with path.open("rb") as handle:
            return path.suffix == ".parquet" and handle.read(4) != b"PAR1"
    head = _head_of(path)
    return head is None or b"\0" in head or head.startswith(_MAGIC)


def _head_of(path: Path) -> bytes | None:
    """The first bytes of a file; None if it cannot be read."""
    try:
        with opened(path) as handle:
            return handle.read(_HEAD_BYTES)
    except UNREADABLE:
        return None


def _begins_with_rows(path: Path) -> bool:
    """Whether a text file begins with two JSON objects that have the same keys, such as the parts that Spark writes without a suffix."""
    lines = (_head_of(path) or b"").split(b"\n")[:-1]
    found = []
    for line in [line for line in lines if line.strip()][:2]:
        try:
            found.append(json.loads(line))
        except ValueError:
            return False
    return len(found) == 2 and isinstance(found[0], dict) and isinstance(found[1], dict) and found[0].keys() == found[1].keys()


def input_files(folder: Path, include: str = "") -> list[Path]:
    """The files below `folder` whose names match one of the patterns, sorted by name, except files that are hidden or in hidden folders
    (incomplete downloads, copies of notebooks), markers such as Spark's _SUCCESS, the record of a fetched repository, and descriptions and
    cached results of Hugging Face datasets.

    Raises InvalidRun with the names of files that would be noise in the training data: binary ones, tables and rows that would be trained
    as text, and beside records any others than `.txt`, such as README.md or LICENSE.
    """
    patterns = [pattern.strip() for pattern in include.split(",") if pattern.strip()] or ["*"]
    found = (path for path in folder.rglob("*") if path.is_file() and not (path.name.startswith("_") and not path.suffix))
    named = {path.relative_to(folder).as_posix(): path for path in found}
    named = {name: path for name, path in named.items() if not any(part.startswith(".") for part in name.split("/"))}
    kept = [name for name in sorted(named) if name != SOURCE_FILE and any(fnmatchcase(name, pattern) for pattern in patterns)]
    found_rows = [named[name] for name in kept]
    files = [path for path in found_rows if path.name not in DESCRIPTIONS] or found_rows
    if any(path.suffix == ".arrow" for path in files):
        files = _of_data_sets(files)
    must = "must contain no Delta Lake table, whose folder also holds rows that were deleted"
    _refuse(must, [path for path in files if path.parent.name == _DELTA][:1], folder)
    must = "must contain text, .jsonl or .json files, those compressed with gzip (.gz) or zstd (.zst), or .parquet and .arrow tables"
    _refuse(must, [path for path in files if _is_binary(path)], folder)
    texts = [path for path in files if not has_rows(path)]
    _refuse("must contain tables as .parquet or .jsonl", [path for path in texts if kind(path) in _SEPARATED], folder)
    _refuse("must have rows of JSON in files with the suffix .jsonl", [path for path in texts if _begins_with_rows(path)], folder)
    if any(has_rows(path) for path in files):
        must = "must contain no text but .txt files beside records (.jsonl, .json, .parquet, .arrow)"
        _refuse(must, [path for path in files if not has_rows(path) and kind(path) != ".txt"], folder)
    return files


def _of_data_sets(files: Sequence[Path]) -> list[Path]:
    """The files without cached results: state.json of `save_to_disk` names the tables of a data set, and beside other tables, a name of the
    cache is no table of its own. Raises InvalidRun for a data set whose rows a further table selects, as old versions wrote."""
    states: dict[Path, dict[str, Any]] = {}
    for folder in {path.parent for path in files}:
        with suppress(OSError, ValueError):
            states[folder] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        if not isinstance(states.get(folder), dict):
            states[folder] = {}
    selected = [folder for folder, state in states.items() if state.get("_indices_data_files")]
    if selected:
        must = "code.arguments.data-channel: must contain data sets without a table of indices"
        raise InvalidRun(f"{must}, got {selected[0].name}; save it again with a current version of datasets")
    own = {path.parent for path in files if path.suffix == ".arrow" and not _CACHED.fullmatch(path.name)}

    def is_kept(path: Path) -> bool:
        if path.suffix != ".arrow":
            return True
        tables = states[path.parent].get("_data_files")
        if isinstance(tables, list) and tables:
            return path.name in [table.get("filename") for table in tables if isinstance(table, dict)]
        return path.parent not in own or not _CACHED.fullmatch(path.name)

    return [path for path in files if is_kept(path)]


def _refuse(must: str, files: Sequence[Path], folder: Path) -> None:
    """Raises InvalidRun if there are files, with the names of some."""
    names = [path.relative_to(folder).as_posix() for path in files]
    if names:
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise InvalidRun(f"code.arguments.data-channel: {must}, got {listed}; convert or remove them")


def share(files: Sequence[Path], host: int, hosts: int) -> list[Path]:
    """The files of host `host` of `hosts`, if every host has all files."""
    return list(files[host::hosts])


def documents(files: Sequence[Path], start: tuple[int, int], text_key: str) -> Iterator[Document]:
    """Yields documents from position `start`: each line of a .jsonl or .json file and each row of a table is a document (field `text_key`),
    any other file is one document.

    Raises DataFailed with file and line of an invalid document.
    """
    first_file, first_line = start
    for number in range(first_file, len(files)):
        skip = first_line if number == first_file else 0
        if has_rows(files[number]):
            for row in rows(files[number], skip, text_key):
                yield Document(number, row.number, _text(row.value, text_key, row.place))
        elif skip == 0:
            with readable(files[number]), opened(files[number]) as handle:
                text = handle.read().removeprefix(codecs.BOM_UTF8)
            yield Document(number, 0, text)


def kind_of(files: Sequence[Path]) -> str:
    """The kind of the shards for these files, determined by the first row: `text`, `sft` or `dpo`."""
    first = next((row.value for file in files if has_rows(file) for row in rows(file, 0)), None)
    shape = shape_of(first) if isinstance(first, dict) else None
    return KINDS[shape] if shape is not None else "text"


def examples(files: Sequence[Path], start: tuple[int, int], reader: ExampleReader) -> Iterator[Examples]:
    """Yields the examples of rows from position `start`. Raises DataFailed with file and line of an invalid row."""
    for number in range(start[0], len(files)):
        file = files[number]
        if not has_rows(file):
            must = "must be a .jsonl or .json file with one object per line, or a table, like the first file"
            raise DataFailed(f"{file.name}: {must}; move it elsewhere")
        for row in rows(file, start[1] if number == start[0] else 0):
            yield Examples(number, row.number, reader.read(row.value, row.place))


def _text(found: Any, text_key: str, place: str) -> bytes:
    text = found.get(text_key) if isinstance(found, dict) else None
    if not isinstance(text, str):
        got = "bytes" if isinstance(text, bytes) else json.dumps(text)
        if text is None and isinstance(found, dict):
            got = f"{got} and the keys {', '.join(found)}; write conversations, completions or preferences under the keys of their formats"
        raise DataFailed(f"{place}: must have text under {text_key!r}, got {got}; remove the line, or set code.arguments.text-key")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataFailed(f"{place}: must have text of whole characters under {text_key!r} ({error}); remove the line") from error


def end_of_turn(files: Sequence[Path], reader: ExampleReader, tokenizer: Tokenizer) -> int | None:
    """The special token that ends what is trained in the first row; None if there is none."""
    line = next(iter(examples(files, (0, 0), reader)), None)
    if line is None:
        return None
    pairs = zip(line.examples[0].tokens, line.examples[0].targets, strict=True)
    trained = tokenizer.decode([token for token, target in pairs if target]).rstrip()
    last = next((marker for marker in tokenizer.markers.finditer(trained) if marker.end() == len(trained)), None)
    ids = tokenizer.encode_chat(last.group()).ids if last else []
    return ids[0] if len(ids) == 1 else None
