"""A small S3 client on the standard library, for containers whose image has no AWS SDK. Python 3.8 and later."""

from slipway_s3.client import S3Client, S3Error
from slipway_s3.endpoint import join_uri, parse_uri

#: Free space that copies of objects leave on the disk of a host.
MIN_FREE_BYTES = 4 << 30

__all__ = ["MIN_FREE_BYTES", "S3Client", "S3Error", "join_uri", "parse_uri"]
