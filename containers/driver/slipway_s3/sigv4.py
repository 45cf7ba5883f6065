"""AWS Signature Version 4, for S3 and other services with the same scheme.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html (2026-11-20). The tests contain its examples. This
module does not log, because signatures and tokens must not appear in messages.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import Dict, Mapping
from urllib.parse import quote

from slipway_s3.credentials import Credentials

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def canonical_path(key: str) -> str:
    """The encoded path of a key for request and signature: S3 encodes keys once and keeps slashes."""
    return quote(key, safe="/-_.~")


def canonical_query(parameters: Mapping[str, str]) -> str:
    """Encoded and sorted query parameters; an empty value keeps its equals sign."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parameters.items())
    return "&".join("%s=%s" % pair for pair in pairs)


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signed_headers(
    method: str,
    host: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    payload_sha256: str,
    credentials: Credentials,
    region: str,
    now: datetime,
    service: str = "s3",
) -> Dict[str, str]:
    """`headers` with the authentication headers added. `path` and `query` must already be encoded; `now` is in UTC."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    sent = {name.lower(): value.strip() for name, value in headers.items()}
    sent.update({"host": host, "x-amz-content-sha256": payload_sha256, "x-amz-date": stamp})
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(sent))
    lines = "".join("%s:%s\n" % (name, sent[name]) for name in sorted(sent))
    request = "\n".join([method, path, query, lines, names, payload_sha256])
    scope = "/".join([stamp[:8], region, service, "aws4_request"])
    to_sign = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = _keyed(("AWS4" + credentials.secret_key).encode(), stamp[:8])
    for part in (region, service, "aws4_request"):
        key = _keyed(key, part)
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    who = "%s/%s" % (credentials.access_key, scope)
    sent["authorization"] = "%s Credential=%s,SignedHeaders=%s,Signature=%s" % (ALGORITHM, who, names, signature)
    return sent
