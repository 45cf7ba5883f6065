"""The package index of a CodeArtifact repository, with a token that the container's role is given.

Source: https://docs.aws.amazon.com/codeartifact/latest/APIReference/API_GetAuthorizationToken.html and
API_GetRepositoryEndpoint.html (2026-11-20).
"""

from __future__ import annotations

import json
import re
import urllib.request
from datetime import datetime, timezone
from typing import Dict, Mapping
from urllib.parse import urlsplit

from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_s3.credentials import load_credentials
from slipway_s3.endpoint import domain_of
from slipway_s3.sigv4 import EMPTY_SHA256, canonical_query, signed_headers

_ARN = re.compile(r"^arn:([^:]+):codeartifact:([^:]+):(\d+):repository/([^/]+)/([^/]+)$")


def _call(method: str, path: str, query: Mapping[str, str], region: str, environ: Mapping[str, str]) -> Dict[str, str]:
    own = environ.get("AWS_ENDPOINT_URL_CODEARTIFACT") or environ.get("AWS_ENDPOINT_URL")
    base = own or "https://codeartifact.%s.%s" % (region, domain_of(region))
    search = canonical_query(query)
    headers = signed_headers(
        method, urlsplit(base).netloc, path, search, {}, EMPTY_SHA256, load_credentials(environ), region,
        datetime.now(timezone.utc), "codeartifact",
    )  # fmt: skip
    request = urllib.request.Request(base + path + "?" + search, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def index_url(repository_arn: str, environ: Mapping[str, str]) -> str:
    """pip's index URL, token included: it must not be logged. Raises DriverError (77) when the repository does not answer."""
    found = _ARN.match(repository_arn)
    if found is None:
        raise DriverError(ENVIRONMENT, "CA_REPOSITORY_ARN: must be the ARN of a CodeArtifact repository, got %s" % repository_arn)
    _, region, owner, domain, repository = found.groups()
    names = {"domain": domain, "domain-owner": owner}
    try:
        token = _call("POST", "/v1/authorization-token", names, region, environ)["authorizationToken"]
        wanted = dict(names, repository=repository, format="pypi")
        endpoint = _call("GET", "/v1/repository/endpoint", wanted, region, environ)["repositoryEndpoint"]
    except (OSError, ValueError, KeyError) as error:
        raise DriverError(ENVIRONMENT, "CA_REPOSITORY_ARN: %s did not answer (%s)" % (repository_arn, error))
    parts = urlsplit(endpoint)
    return "%s://aws:%s@%s%s/simple/" % (parts.scheme, token, parts.netloc, parts.path.rstrip("/"))
