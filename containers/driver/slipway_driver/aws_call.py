"""One signed call to a regional AWS service that answers in JSON."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, NamedTuple
from urllib.parse import urlsplit

from slipway_s3.credentials import load_credentials
from slipway_s3.endpoint import domain_of, own_endpoint
from slipway_s3.sigv4 import canonical_query, signed_headers


class AwsRequest(NamedTuple):
    """`service`: as it is signed for, and as the region's address begins; `endpoint`: its name in AWS_ENDPOINT_URL_<name>."""

    service: str
    endpoint: str
    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""


def call_aws(request: AwsRequest, region: str, environ: Mapping[str, str]) -> Dict[str, Any]:
    """The service's answer. Raises OSError when it refuses or does not answer, ValueError for an answer that is no JSON."""
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
