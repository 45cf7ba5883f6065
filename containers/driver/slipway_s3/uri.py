"""Parses and joins s3:// URIs."""

from __future__ import annotations

from typing import Tuple


def parse_uri(uri: str) -> Tuple[str, str]:
    """(bucket, key) of `s3://bucket/key`. Raises ValueError for anything else."""
    if not uri.startswith("s3://"):
        raise ValueError("must begin with s3://, got %s" % uri)
    bucket, _, key = uri[len("s3://") :].partition("/")
    if not bucket:
        raise ValueError("must name a bucket, got %s" % uri)
    return bucket, key


def join_uri(folder: str, name: str) -> str:
    """`name` below `folder`, with exactly one slash between them."""
    return folder.rstrip("/") + "/" + name
