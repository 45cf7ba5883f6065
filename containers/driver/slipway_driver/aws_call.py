"""Sends one signed request to a regional AWS service with a JSON API."""

from __future__ import annotations

import hashlib
import json
import random
import re
from datetime import datetime, timezone
from time import sleep
from typing import Any, Dict, Mapping, NamedTuple
from urllib.parse import urlsplit

from slipway_s3.client import RETRIED
from slipway_s3.endpoint import domain_of, own_endpoint
from slipway_s3.sigv4 import canonical_query, load_credentials, signed_headers

#: Tries of a request that the service refuses for its rate or fails to serve, because all hosts of a job start at the same time. Without a
#: response, as in a network without an endpoint for the service, there are fewer tries, of up to 30 s each.
ATTEMPTS, ATTEMPTS_WITHOUT_RESPONSE = 8, 3
LONGEST_DELAY_SECONDS = 20.0
_THROTTLED = re.compile("Throttl|TooManyRequests")


class AwsRequest(NamedTuple):
    """`service`: the name used for signing and as the prefix of the regional host name; `endpoint`: the name in AWS_ENDPOINT_URL_<name>."""

    service: str
    endpoint: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""


class AwsError(OSError):
    """An error status of a service. Its text is the code of the error without the message, which may quote the request of a denied call."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code or "HTTP %d" % status)
        self.passes = status in RETRIED or _THROTTLED.search(code) is not None


def call_aws(request: AwsRequest, region: str, environ: Mapping[str, str]) -> Dict[str, Any]:
    """Returns the parsed response. Raises AwsError for an error status, OSError without a response, ValueError for one that is not JSON."""
    import http.client

    attempt = 0
    while True:
        attempt += 1
        try:
            try:
                return _send(request, region, environ)
            except http.client.HTTPException as error:
                raise ConnectionError("the response broke off: %s" % error) from error
        except AwsError as error:
            if attempt == ATTEMPTS or not error.passes:
                raise
        except OSError:
            if attempt >= ATTEMPTS_WITHOUT_RESPONSE:
                raise
        sleep(min(LONGEST_DELAY_SECONDS, 0.2 * 2**attempt) * random.uniform(0.5, 1.0))


def _send(request: AwsRequest, region: str, environ: Mapping[str, str]) -> Dict[str, Any]:
    import urllib.error
    import urllib.request

    base = own_endpoint(environ, request.endpoint) or "https://%s.%s.%s" % (request.service, region, domain_of(region))
    search = canonical_query(request.query)
    signed = signed_headers(
        request.method, urlsplit(base).netloc, request.path, search, request.headers, hashlib.sha256(request.body).hexdigest(),
        load_credentials(environ), region, datetime.now(timezone.utc), request.service,
    )  # fmt: skip
    address = base + request.path + ("?" + search if search else "")
    sent = urllib.request.Request(address, data=request.body or None, headers=signed, method=request.method)
    try:
        with urllib.request.urlopen(sent, timeout=30) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise AwsError(error.code, _code_of(error.headers.get("x-amzn-ErrorType") or "", error.read())) from None


def _code_of(header: str, body: bytes) -> str:
    """The code of an error: `__type` of its body, or the header of services with a REST protocol, without namespace and address."""
    try:
        named = str(json.loads(body).get("__type") or header)
    except (AttributeError, ValueError):
        named = header
    return named.split("#")[-1].split(":")[0]
