"""Copies of this host's newest checkpoint objects on its own disk, from which a restart in place reads instead of from S3.

Copies do not make a checkpoint complete. A copy is read only if a COMMITTED.json lists the object with the same size and the digest that
was computed while it was written; all other objects come from the store.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from slipway_s3 import MIN_FREE_BYTES
from slipway_trainer.checkpoint.store import Listed, ObjectWriter, Store, Written

#: Number of checkpoints whose copies are kept; the newest may not be completely uploaded yet.
KEPT = 2
_FOLDER = re.compile(r"^step-([0-9]{1,12})$")


def digest_file(copy: Path) -> Path:
    """The file next to a copy that contains its SHA-256."""
    return copy.with_name(copy.name + ".sha256")


class _CopyingWriter(ObjectWriter):
    """Writes an object, and a copy of it until the first error: the copy is optional."""

    def __init__(self, writer: ObjectWriter, target: Path) -> None:
        self._writer, self._target = writer, target
        self._temporary = target.with_name(target.name + ".tmp")
        self._file: BinaryIO | None = None
        with self._errors_end_copy():
            target.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._temporary.open("wb")

    @contextmanager
    def _errors_end_copy(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._end_copy()

    def write(self, data: bytes) -> None:
        self._writer.write(data)
        with self._errors_end_copy():
            if self._file is not None and shutil.disk_usage(self._target.parent).free < len(data) + MIN_FREE_BYTES:
                self._end_copy()
            if self._file is not None:
                self._file.write(data)

    def close(self) -> Written:
        written = self._writer.close()
        with self._errors_end_copy():
            if self._file is not None:
                self._file.close()
                digest_file(self._target).unlink(missing_ok=True)
                self._temporary.rename(self._target)
                digest_file(self._target).write_text(written.sha256, encoding="ascii")
        return written

    def abort(self) -> None:
        self._end_copy()
        self._writer.abort()

    def _end_copy(self) -> None:
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
            self._temporary.unlink(missing_ok=True)
        self._file = None


class CopyingStore:
    """A store with copies of the written objects below `root`. Copies are read after `trust` has compared them with a record."""

    def __init__(self, store: Store, root: Path) -> None:
        self._store, self._root = store, root
        self._trusted: set[str] = set()
        self.uri = store.uri

    def open(self, name: str) -> ObjectWriter:
        self._trusted.discard(name)
        # This rank's copies of older checkpoints make room for one more.
        copies = self._root.glob(f"step-*/{Path(name).name}")
        found = [(int(match.group(1)), path) for path in copies if (match := _FOLDER.match(path.parent.name))]
        for _step, path in sorted(found, reverse=True)[KEPT - 1 :]:
            self._drop(path)
        return _CopyingWriter(self._store.open(name), self._root / name)

    def _drop(self, path: Path) -> None:
        with suppress(OSError):
            digest_file(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            path.parent.rmdir()

    def trust(self, folder: str, record: Mapping[str, Any]) -> int:
        """Compares the copies with the objects of a COMMITTED.json; returns the number of objects that can be read locally."""
        for entry in record["objects"]:
            name = f"{folder}/{entry['key']}"
            copy = self._root / name
            with suppress(OSError):
                same = digest_file(copy).read_text(encoding="ascii") == entry.get("sha256")
                if same and copy.stat().st_size == entry["bytes"]:
                    self._trusted.add(name)
        return len(self._trusted)

    def read(self, name: str, first: int = 0, length: int | None = None) -> bytes:
        if name in self._trusted:
            with suppress(OSError), (self._root / name).open("rb") as handle:
                handle.seek(first)
                data = handle.read() if length is None else handle.read(length)
                if length is None or len(data) == length:
                    return data
        return self._store.read(name, first, length)

    def size(self, name: str) -> int | None:
        return self._store.size(name)

    def list(self, prefix: str) -> Iterator[Listed]:
        return self._store.list(prefix)

    def delete(self, name: str) -> None:
        self._trusted.discard(name)
        self._drop(self._root / name)
        self._store.delete(name)
