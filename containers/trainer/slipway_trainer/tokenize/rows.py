"""Reads rows of data set files: JSON lines and arrays, optionally compressed, and Parquet and Arrow tables.

Only tables and zstd need the image's `pyarrow` package.
"""

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from slipway_trainer.exits import DataFailed, InvalidRun
from slipway_trainer.tokenize.messages import without_nulls

#: Suffixes of files with one JSON object per line; a .json file may also be one array. Other text files are one document each. All may be
#: compressed.
LINES = (".jsonl", ".json", ".ndjson", ".jsonlines", ".ldjson")
#: Suffixes of tables: Parquet, and Arrow's IPC format as a file or as a stream (`save_to_disk` of Hugging Face datasets).
TABLES = (".parquet", ".arrow")
#: Files of data sets beside their rows.
DESCRIPTIONS = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
#: Suffixes of compressed lines.
COMPRESSED = (".gz", ".zst")
#: Exceptions while reading a truncated or corrupt file; Arrow's content errors are also OSErrors.
UNREADABLE = (OSError, EOFError, zlib.error)
#: Number of table rows that are decoded together.
_BATCH = 512


class Row(NamedTuple):
    """A line or table row: its number from 0, its value, and its position for messages (file and number from 1)."""

    number: int
    value: Any
    place: str


def kind(path: Path) -> str:
    """The suffix that determines how a file is read, in lower case and without a compression suffix."""
    return (Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix).lower()


def has_rows(path: Path) -> bool:
    """Whether a file contains rows according to its name: JSON lines or a table."""
    return kind(path) in LINES or path.suffix in TABLES


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading and decompresses it."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".zst":
        return io.BufferedReader(_arrow(path).CompressedInputStream(str(path), "zstd"))
    return path.open("rb")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Converts errors of a truncated or corrupt file to DataFailed."""
    try:
        yield
    except UNREADABLE as error:
        raise DataFailed(f"{path.name}: must be whole and readable ({error}); copy it again or remove it") from error


def rows(path: Path, skip: int, column: str | None = None) -> Iterator[Row]:
    """The rows of a file after the first `skip`; blank lines are skipped. `column`: the only column that is read from a table. Raises
    DataFailed with the position of an unreadable row."""
    found = _table(path, skip, column) if path.suffix in TABLES else _lines(path, skip)
    with readable(path):
        yield from found


def _lines(path: Path, skip: int) -> Iterator[Row]:
    if kind(path) == ".json" and _is_array(path):
        yield from _elements(path, skip)
        return
    with opened(path) as handle:
        for number, content in enumerate(handle):
            if number >= skip and content.strip():
                place = f"{path.name}:{number + 1}"
                try:
                    yield Row(number, json.loads(content), place)
                except ValueError as error:
                    raise DataFailed(f"{place}: must be one JSON object per line ({error}); correct the line") from error


def _is_array(path: Path) -> bool:
    """Whether a file is one JSON array over several lines, or on its only line."""
    with opened(path) as handle:
        first = next((line.strip() for line in handle if line.strip()), b"").removeprefix(codecs.BOM_UTF8)
        if not first.startswith(b"["):
            return False
        try:
            json.loads(first)
        except ValueError:
            return True
        return not any(line.strip() for line in handle)


def _elements(path: Path, skip: int) -> Iterator[Row]:
    with opened(path) as handle:
        try:
            found = json.load(handle)
        except ValueError as error:
            raise DataFailed(f"{path.name}: must be one JSON array, or one JSON object per line ({error}); correct the file") from error
    for number, value in enumerate(found[skip:], skip):
        yield Row(number, value, f"{path.name}, element {number + 1}")


def _table(path: Path, skip: int, column: str | None) -> Iterator[Row]:
    arrow = _arrow(path)
    try:
        first, batches = _parquet(path, skip, column) if path.suffix == ".parquet" else (0, _ipc(path, column))
        for batch in batches:
            decoders = _json_columns(batch.schema)
            # A table has all keys in every row, and null where a row has none.
            for number, value in enumerate(batch.to_pylist(), first):
                if number >= skip:
                    yield Row(number, _decoded(without_nulls(value, kept=()), decoders), f"{path.name}, row {number + 1}")
            first += batch.num_rows
    except arrow.ArrowInvalid as error:
        raise DataFailed(f"{path.name}: must be a {path.suffix[1:]} table ({error}); copy it again or remove it") from error


def _decoded(fields: dict[str, Any], decoders: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    return {name: decoders[name](field) if name in decoders else field for name, field in fields.items()}


def _json_columns(schema: Any) -> dict[str, Callable[[Any], Any]]:
    """Functions that decode the columns with JSON inside, which Hugging Face datasets uses for values of several types."""
    return {field.name: decoded for field in schema if (decoded := _json_decoder(field.type)) is not None}


def _json_decoder(kind: Any) -> Callable[[Any], Any] | None:
    """Decodes the JSON in values of an Arrow type; None if there is none."""
    from pyarrow import types

    if getattr(kind, "extension_name", "") == "arrow.json":
        return json.loads
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = _json_decoder(kind.value_type)
        return None if inner is None else lambda values: [None if value is None else inner(value) for value in values]
    if types.is_struct(kind):
        fields = _json_columns(kind)
        return (lambda value: _decoded(value, fields)) if fields else None
    return None


def _parquet(path: Path, skip: int, column: str | None) -> tuple[int, Iterator[Any]]:
    """The number of the first row that is read, and batches from there. Completely skipped row groups are not read."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path)
    columns = None if column is None else [_known(column, file.schema_arrow.names, path)]
    first, groups = 0, list(range(file.num_row_groups))
    while groups and first + file.metadata.row_group(groups[0]).num_rows <= skip:
        first += file.metadata.row_group(groups.pop(0)).num_rows
    return first, file.iter_batches(_BATCH, row_groups=groups, columns=columns)


def _ipc(path: Path, column: str | None) -> Iterator[Any]:
    from pyarrow import ipc, memory_map

    with memory_map(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = ipc.open_file(source) if is_file else ipc.open_stream(source)
        name = None if column is None else _known(column, reader.schema.names, path)
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches)) if is_file else reader
        for batch in batches:
            whole = batch if name is None else batch.select([name])
            for begin in range(0, whole.num_rows, _BATCH):
                yield whole.slice(begin, _BATCH)


def _known(column: str, names: list[str], path: Path) -> str:
    if column not in names:
        raise DataFailed(f"{path.name}: must have a column {column!r}, got {', '.join(names)}; set code.arguments.text-key")
    return column


def _arrow(path: Path) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise InvalidRun(
            f"{path.name}: the image must have the `pyarrow` package to read {path.suffix}; choose one that has it (image.uri)"
        ) from error
    return pyarrow
