"""Gets the package index URL of a CodeArtifact repository, with a token issued to the container's role.

Source: https://docs.aws.amazon.com/codeartifact/latest/APIReference/API_GetAuthorizationToken.html and API_GetRepositoryEndpoint.html
(2026-11-20).
"""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping
from urllib.parse import urlsplit

from slipway_driver.aws_call import AwsRequest, call_aws
from slipway_driver.exit_codes import ENVIRONMENT, DriverError

_ARN = re.compile(r"^arn:([^:]+):codeartifact:([^:]+):(\d+):repository/([^/]+)/([^/]+)$")


def _call(method: str, path: str, query: Mapping[str, str], region: str, environ: Mapping[str, str]) -> Dict[str, Any]:
    return call_aws(AwsRequest("codeartifact", "CODEARTIFACT", method, path, query), region, environ)


def index_url(repository_arn: str, environ: Mapping[str, str]) -> str:
    """Index URL for pip. It contains the token and must not be logged. Raises DriverError (77) if a request to the repository fails."""
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
        raise DriverError(ENVIRONMENT, "CA_REPOSITORY_ARN: the request to %s failed (%s)" % (repository_arn, error))
    parts = urlsplit(endpoint)
    return "%s://aws:%s@%s%s/simple/" % (parts.scheme, token, parts.netloc, parts.path.rstrip("/"))
