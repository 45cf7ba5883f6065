"""A small S3 client on the standard library, for containers whose image has no AWS SDK. Python 3.8 and later."""

from slipway_s3.client import S3Client, S3Error
from slipway_s3.uri import join_uri, parse_uri

__all__ = ["S3Client", "S3Error", "join_uri", "parse_uri"]
