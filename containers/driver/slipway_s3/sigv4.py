"""AWS Signature Version 4, for S3 and other services with the same scheme, and the credentials of the container's role, in the order of the
AWS SDKs: environment variables, then the container endpoint. Nothing here logs, because signatures and tokens must not appear in messages.

Sources: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, whose examples are in the tests, and
https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html (2026-11-20).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from datetime import datetime, timezone
from typing import Dict, Mapping, NamedTuple, Optional
from urllib.parse import quote

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


CONTAINER_HOST = "http://169.254.170.2"
# The SDKs refresh credentials that expire within this time.
REFRESH_SECONDS = 300.0


class Credentials(NamedTuple):
    """AWS credentials for signing requests."""

    access_key: str
    secret_key: str
    token: Optional[str]
    #: Epoch seconds; None if they do not expire.
    expires_at: Optional[float]


class NoCredentials(Exception):
    """The container has no credentials, for example under network isolation."""


def _fetch(url: str, headers: Mapping[str, str]) -> bytes:
    import urllib.request

    with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=5) as answer:
        return answer.read()


def load_credentials(environ: Mapping[str, str]) -> Credentials:
    """Loads credentials from the environment or the container endpoint. Raises NoCredentials if there are none."""
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return Credentials(environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], environ.get("AWS_SESSION_TOKEN"), None)
    relative = environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    full = CONTAINER_HOST + relative if relative else environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not full:
        raise NoCredentials("the container has no credentials: no AWS_ACCESS_KEY_ID and no container credentials URI")
    headers = {}
    token_file = environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    if token_file:
        with open(token_file, encoding="utf-8") as handle:
            headers["Authorization"] = handle.read().strip()
    elif environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"):
        headers["Authorization"] = environ["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    found = json.loads(_fetch(full, headers))
    expires, when = found.get("Expiration"), None
    if expires:
        when = datetime.strptime(expires[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token"), when)


class CredentialSource:
    """Caches credentials and refreshes them before they expire. May be shared between threads."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._held: Optional[Credentials] = None
        self._lock = threading.Lock()

    def get(self) -> Credentials:
        """Credentials that are valid for at least REFRESH_SECONDS. Raises NoCredentials."""
        with self._lock:
            held = self._held
            if held is None or (held.expires_at is not None and held.expires_at - time.time() < REFRESH_SECONDS):
                self._held = held = load_credentials(self._environ)
            return held
