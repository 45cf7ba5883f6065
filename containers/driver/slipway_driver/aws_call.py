"""Sends one signed request to a regional AWS service with a JSON API."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, NamedTuple
from urllib.parse import urlsplit

from slipway_s3.credentials import load_credentials
from slipway_s3.endpoint import domain_of, own_endpoint
from slipway_s3.sigv4 import canonical_query, signed_headers


class AwsRequest(NamedTuple):
    """`service`: the name used for signing and as the prefix of the regional host name; `endpoint`: the name in AWS_ENDPOINT_URL_<name>."""

    service: str
    endpoint: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""


def call_aws(request: AwsRequest, region: str, environ: Mapping[str, str]) -> Dict[str, Any]:
    """Returns the parsed response. Raises OSError for an error status or without a response, ValueError for one that is not JSON."""
    import urllib.request

    base = own_endpoint(environ, request.endpoint) or "https://%s.%s.%s" % (request.service, region, domain_of(region))
    search = canonical_query(request.query)
    signed = signed_headers(
        request.method, urlsplit(base).netloc, request.path, search, request.headers, hashlib.sha256(request.body).hexdigest(),
        load_credentials(environ), region, datetime.now(timezone.utc), request.service,
    )  # fmt: skip
    address = base + request.path + ("?" + search if search else "")
    sent = urllib.request.Request(address, data=request.body or None, headers=signed, method=request.method)
    with urllib.request.urlopen(sent, timeout=30) as answer:
        return json.loads(answer.read())
