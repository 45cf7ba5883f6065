"""Credentials of the container's role, in the order of the AWS SDKs: environment variables, then the container endpoint.

Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html (2026-11-20).
"""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timezone
from typing import Callable, Mapping, NamedTuple, Optional

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


def load_credentials(environ: Mapping[str, str], fetch: Callable[[str, Mapping[str, str]], bytes] = _fetch) -> Credentials:
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
    found = json.loads(fetch(full, headers))
    expires, when = found.get("Expiration"), None
    if expires:
        when = datetime.strptime(expires[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found.get("Token"), when)


class CredentialSource:
    """Caches credentials and refreshes them before they expire. May be shared between threads."""

    def __init__(
        self,
        environ: Mapping[str, str],
        fetch: Callable[[str, Mapping[str, str]], bytes] = _fetch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._environ, self._fetch, self._clock = environ, fetch, clock
        self._held: Optional[Credentials] = None
        self._lock = threading.Lock()

    def get(self) -> Credentials:
        """Credentials that are valid for at least REFRESH_SECONDS. Raises NoCredentials."""
        with self._lock:
            held = self._held
            if held is None or (held.expires_at is not None and held.expires_at - self._clock() < REFRESH_SECONDS):
                self._held = held = load_credentials(self._environ, self._fetch)
            return held
