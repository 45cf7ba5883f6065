"""Transfers large objects with the S3 connector for PyTorch (s3torchconnector 1.5), if it is installed.

It is AWS's client in native code: it does not hold the GIL and uses many connections for one object. Names, digests and the order of writes
are those of the store, so the objects are the same with both clients.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from slipway_s3.client import TEAM_KEY_VARIABLE
from slipway_s3.endpoint import own_endpoint, region_of

#: `off` in a run's environmentVariables disables the connector, so that the trainer's own client is used.
VARIABLE = "SLIPWAY_S3_CONNECTOR"


class ConnectorUpload:
    """An upload in progress. The object becomes visible only after `finish`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def send(self, part: bytes) -> None:
        """Uploads the next part."""
        self._writer.write(part)

    def finish(self) -> None:
        """Completes the upload."""
        self._writer.close()

    def abort(self) -> None:
        """Ends the upload so that the object never becomes visible. Its parts may remain until the bucket's lifecycle rule for incomplete
        uploads deletes them: s3torchconnector 1.5 did not abort 7 of 480 uploads on a busy machine."""
        # A writer completes its upload when it is garbage-collected. Deleting its stream cancels the upload.
        del self._writer.stream


class Connector:
    """The client of a process; its threads may share it."""

    def __init__(self, environ: Mapping[str, str], part_bytes: int) -> None:
        from s3torchconnector import S3ClientConfig, S3ReaderConstructor

        # The connector's DCP classes import it from there as well: S3Checkpoint does not support ranges.
        from s3torchconnector._s3client import S3Client
        from s3torchconnectorclient._mountpoint_s3_client import ObjectInfo

        endpoint = own_endpoint(environ)
        config = S3ClientConfig(part_size=part_bytes, force_path_style=endpoint is not None)
        self._client = S3Client(region_of(environ), endpoint=endpoint, s3client_config=config)
        self._reader = S3ReaderConstructor.range_based(buffer_size=0)
        self._info = ObjectInfo

    def upload(self, bucket: str, key: str) -> ConnectorUpload:
        """Starts the upload of one object."""
        return ConnectorUpload(self._client.put_object(bucket, key))

    def read(self, bucket: str, key: str, first: int, length: int) -> bytes:
        """Returns `length` bytes from byte `first`. Raises EOFError if the object is shorter."""
        # The connector needs the size only to limit reads. COMMITTED.json was already compared with the size, so this saves a request.
        known = self._info(key, "", first + length, 0, None, None)
        data = bytearray(length)
        with self._client.get_object(bucket, key, object_info=known, reader_constructor=self._reader) as reader:
            reader.seek(first)
            got = reader.readinto(data)
        if got != length:
            # `read` would return zeros for the missing bytes.
            raise EOFError(f"s3://{bucket}/{key}: ends {length - got} bytes too early")
        return bytes(data)


def find_connector(environ: Mapping[str, str], part_bytes: int) -> Connector | None:
    """The connector; None if it is not installed or is disabled."""
    # Uploads of s3torchconnector 1.5 cannot specify a KMS key, and the bucket's default key is not the team's key.
    if environ.get(VARIABLE) == "off" or environ.get(TEAM_KEY_VARIABLE) or find_spec("s3torchconnector") is None:
        return None
    return Connector(environ, part_bytes)
