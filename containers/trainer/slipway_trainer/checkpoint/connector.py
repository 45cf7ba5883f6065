"""The S3 connector for PyTorch (s3torchconnector 1.5), where the image has it, carries what is large.

It is AWS's own client in native code: it holds no lock of Python's and reads and writes one object over many connections. Names, digests
and the order of writes stay the store's, so that either way writes the same objects and reads the other's.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from slipway_s3.client import TEAM_KEY_VARIABLE
from slipway_s3.endpoint import own_endpoint, region_of

#: `off` in a run's environmentVariables: this trainer's own client carries everything.
VARIABLE = "SLIPWAY_S3_CONNECTOR"


class ConnectorUpload:
    """One object on its way. It appears under its name only with `finish`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def send(self, part: bytes) -> None:
        self._writer.write(part)

    def finish(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        """Never lets the object appear. Its parts may stay until the bucket's rule for incomplete uploads removes them: of 480 uploads that
        were aborted on a busy machine, s3torchconnector 1.5 left 7 without asking S3 to abort them."""
        # A writer that is left alone finishes its upload when it is collected; without its stream, which cancels it, it cannot.
        del self._writer.stream


class Connector:
    """A client of one process, shared by its threads."""

    def __init__(self, environ: Mapping[str, str], part_bytes: int) -> None:
        from s3torchconnector import S3ClientConfig, S3ReaderConstructor

        # Where the connector's own DCP classes have it from: S3Checkpoint has no ranges.
        from s3torchconnector._s3client import S3Client
        from s3torchconnectorclient._mountpoint_s3_client import ObjectInfo

        endpoint = own_endpoint(environ)
        config = S3ClientConfig(part_size=part_bytes, force_path_style=endpoint is not None)
        self._client = S3Client(region_of(environ), endpoint=endpoint, s3client_config=config)
        self._reader = S3ReaderConstructor.range_based(buffer_size=0)
        self._info = ObjectInfo

    def upload(self, bucket: str, key: str) -> ConnectorUpload:
        """Begins an upload of one object."""
        return ConnectorUpload(self._client.put_object(bucket, key))

    def read(self, bucket: str, key: str, first: int, length: int) -> bytes:
        """`length` bytes from byte `first`."""
        # It asks for an object's size only to stay within it, and COMMITTED.json has compared that: one request less.
        known = self._info(key, "", first + length, 0, None, None)
        data = bytearray(length)
        with self._client.get_object(bucket, key, object_info=known, reader_constructor=self._reader) as reader:
            reader.seek(first)
            got = reader.readinto(data)
        if got != length:
            # Its `read` would give zeros for the rest.
            raise EOFError(f"s3://{bucket}/{key}: ends {length - got} bytes too early")
        return bytes(data)


def find_connector(environ: Mapping[str, str], part_bytes: int) -> Connector | None:
    """The connector; None where it is not installed or not wanted."""
    # Its uploads can name no key (s3torchconnector 1.5), and the key of the bucket is not the team's.
    if environ.get(VARIABLE) == "off" or environ.get(TEAM_KEY_VARIABLE) or find_spec("s3torchconnector") is None:
        return None
    return Connector(environ, part_bytes)
