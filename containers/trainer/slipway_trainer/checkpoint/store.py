"""Storage of checkpoint objects: a folder (file system, sandbox) or a prefix in S3. Names are relative and use forward slashes."""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from slipway_s3 import S3Client, S3Error, parse_uri
from slipway_trainer.checkpoint.connector import Connector, ConnectorUpload, find_connector
from slipway_trainer.exits import TrainerError

PART_BYTES = 64 << 20
# Number of parts of one object that are uploaded in parallel; with one object per rank, a host uploads eight times as many.
PARALLEL_PARTS = 4
#: What a file system reports while its server does not answer, or has cut this client off.
_UNANSWERED = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ESHUTDOWN, errno.EHOSTDOWN, errno.EHOSTUNREACH)


def unanswered(error: BaseException) -> bool:
    """Whether the storage did not answer, which says nothing about its content."""
    if isinstance(error, S3Error):
        return error.passes
    if isinstance(error, OSError):
        return error.errno in _UNANSWERED
    # The connector has one class for all errors.
    return type(error).__name__ == "S3Exception" and any(words in str(error) for words in ("Request throttled", "CRT error"))


def storage_failure(what: str, error: BaseException, kind: type[TrainerError], fix: str) -> TrainerError:
    """What ends the program for an error: `kind`, and after an outage an error with which it is tried again."""
    if unanswered(error):
        return TrainerError(f"the storage does not answer: {what}; the run is tried again")
    return kind(f"{what}; {fix}")


@contextmanager
def storage_errors(what: str, kind: type[TrainerError], fix: str) -> Iterator[None]:
    """Converts errors of a store as `storage_failure` does."""
    try:
        yield
    except (S3Error, OSError) as error:
        raise storage_failure(f"{what}: {error}", error, kind, fix) from error


class Listed(NamedTuple):
    """An object in a listing: its name relative to the store, and its size in bytes."""

    name: str
    bytes: int


class Written(NamedTuple):
    """A completed object."""

    name: str
    bytes: int
    sha256: str


class ObjectWriter:
    """Writes the bytes of an object in order. The object becomes visible only after `close`. As a context, it discards the object after an
    error."""

    def __init__(self, name: str) -> None:
        self._name, self._digest, self._bytes = name, hashlib.sha256(), 0

    def __enter__(self) -> "ObjectWriter":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            # A failure of the clean-up must not hide its cause; the bucket deletes what stays of an upload.
            with suppress(Exception):
                self.abort()

    def write(self, data: bytes) -> None:
        """Appends bytes to the object."""
        self._digest.update(data)
        self._bytes += len(data)
        self._append(data)

    def close(self) -> Written:
        """Makes the object visible. Returns its name, size and digest."""
        self._finish()
        return Written(self._name, self._bytes, self._digest.hexdigest())

    def abort(self) -> None:
        """Discards the object."""
        raise NotImplementedError

    def _append(self, data: bytes) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError


class Store(Protocol):
    """Objects by name below one location. Every method raises OSError or S3Error if a request fails."""

    uri: str

    def open(self, name: str) -> ObjectWriter:
        """Starts a new object, which becomes visible when its writer is closed."""

    def read(self, name: str, first: int = 0, length: int | None = None) -> bytes:
        """Returns `length` bytes from byte `first`, or all bytes from there without a length."""

    def size(self, name: str) -> int | None:
        """Size of an object in bytes; None if it does not exist."""

    def list(self, prefix: str) -> Iterator[Listed]:
        """All objects below a prefix."""

    def delete(self, name: str) -> None:
        """Deletes an object; succeeds if it does not exist."""


def write_object(store: Store, name: str, data: bytes) -> Written:
    """Writes a whole object."""
    with store.open(name) as writer:
        writer.write(data)
        return writer.close()


class _FolderWriter(ObjectWriter):
    def __init__(self, root: Path, name: str) -> None:
        super().__init__(name)
        self._target = root / name
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = self._target.with_name(self._target.name + ".tmp")
        self._file = self._temporary.open("wb")

    def _append(self, data: bytes) -> None:
        self._file.write(data)

    def _finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.rename(self._target)

    def abort(self) -> None:
        # Before the file is closed, which fails on a full disk.
        self._temporary.unlink(missing_ok=True)
        self._file.close()


class FolderStore:
    """Objects as files below a folder that all ranks share."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self.uri = str(self._root)

    def open(self, name: str) -> ObjectWriter:
        return _FolderWriter(self._root, name)

    def read(self, name: str, first: int = 0, length: int | None = None) -> bytes:
        with (self._root / name).open("rb") as handle:
            handle.seek(first)
            return handle.read() if length is None else handle.read(length)

    def size(self, name: str) -> int | None:
        path = self._root / name
        return path.stat().st_size if path.is_file() else None

    def list(self, prefix: str) -> Iterator[Listed]:
        start = self._root / prefix
        for path in sorted(start.rglob("*")) if start.is_dir() else []:
            if path.is_file() and not path.name.endswith(".tmp"):
                yield Listed(path.relative_to(self._root).as_posix(), path.stat().st_size)

    def delete(self, name: str) -> None:
        path = self._root / name
        path.unlink(missing_ok=True)
        if path.parent != self._root and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


class _Multipart:
    """A multipart upload with the trainer's own client; parts are uploaded while the next one is filled. Visible only after `finish`."""

    def __init__(self, client: S3Client, bucket: str, key: str) -> None:
        self._client, self._place = client, (bucket, key)
        self._pool = ThreadPoolExecutor(PARALLEL_PARTS, thread_name_prefix="s3-part")
        self._upload_id = client.create_upload(bucket, key)
        self._parts: list[Future[str]] = []

    def send(self, part: bytes) -> None:
        if len(self._parts) >= PARALLEL_PARTS:
            # Limits the number of parts in memory.
            self._parts[-PARALLEL_PARTS].result()
        number = len(self._parts) + 1
        self._parts.append(self._pool.submit(self._client.upload_part, *self._place, self._upload_id, number, part))

    def finish(self) -> None:
        etags = [part.result() for part in self._parts]
        self._pool.shutdown()
        self._client.complete_upload(*self._place, self._upload_id, etags)

    def abort(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._client.abort_upload(*self._place, self._upload_id)


class _S3Writer(ObjectWriter):
    """Writes small objects with one request and larger ones with a multipart upload."""

    def __init__(self, name: str, put: Callable[[bytes], None], begin: Callable[[], Any]) -> None:
        super().__init__(name)
        self._put, self._begin = put, begin
        self._buffer = bytearray()
        self._upload: _Multipart | ConnectorUpload | None = None

    def _append(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= PART_BYTES:
            self._upload = self._upload or self._begin()
            self._upload.send(bytes(self._buffer[:PART_BYTES]))
            del self._buffer[:PART_BYTES]

    def _finish(self) -> None:
        if self._upload is None:
            self._put(bytes(self._buffer))
            return
        if self._buffer:
            self._upload.send(bytes(self._buffer))
        self._upload.finish()

    def abort(self) -> None:
        if self._upload is not None:
            self._upload.abort()


class S3Store:
    """Objects below a prefix of a bucket. The connector, if there is one, transfers everything that is larger than a part."""

    def __init__(self, uri: str, client: S3Client | None = None, connector: Connector | None = None) -> None:
        self.uri = uri.rstrip("/")
        self._bucket, key = parse_uri(self.uri)
        self._prefix = key + "/" if key else ""
        self._client = client or S3Client(log=lambda line: print(line, flush=True))
        self._connector = connector

    def open(self, name: str) -> ObjectWriter:
        place = (self._bucket, self._prefix + name)
        begin = partial(self._connector.upload, *place) if self._connector else partial(_Multipart, self._client, *place)
        return _S3Writer(name, partial(self._client.put, *place), begin)

    def read(self, name: str, first: int = 0, length: int | None = None) -> bytes:
        if self._connector and length and length > PART_BYTES:
            return self._connector.read(self._bucket, self._prefix + name, first, length)
        return self._client.get(self._bucket, self._prefix + name, first, length)

    def size(self, name: str) -> int | None:
        return self._client.size(self._bucket, self._prefix + name)

    def list(self, prefix: str) -> Iterator[Listed]:
        for found in self._client.list(self._bucket, self._prefix + prefix):
            yield Listed(found.key[len(self._prefix) :], found.bytes)

    def delete(self, name: str) -> None:
        self._client.delete(self._bucket, self._prefix + name)


def open_store(uri: str) -> Store:
    """The store for `s3://bucket/prefix` or a path."""
    return S3Store(uri, connector=find_connector(os.environ, PART_BYTES)) if uri.startswith("s3://") else FolderStore(uri)
