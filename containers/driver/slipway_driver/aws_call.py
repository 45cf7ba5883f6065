"""Requests to regional AWS services with a JSON API, and the secrets of the run file: read in the container with the role of the job,
passed to the script as environment variables, and masked in all output.

Sources: https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html and
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html (2026-11-22).
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from datetime import datetime, timezone
from time import sleep
from typing import Any, Dict, Mapping
from urllib.parse import urlsplit

from slipway_driver.exit_codes import DriverError
from slipway_driver.log import SHORTEST_SECRET, hide, log
from slipway_s3.client import RETRIED
from slipway_s3.endpoint import domain_of, own_endpoint, region_of
from slipway_s3.sigv4 import canonical_query, load_credentials, signed_headers

#: Tries of a request that the service refuses for its rate or fails to serve, because all hosts of a job start at the same time. Without a
#: response, as in a network without an endpoint for the service, there are fewer tries, of up to 30 s each.
ATTEMPTS, ATTEMPTS_WITHOUT_RESPONSE = 8, 3
LONGEST_DELAY_SECONDS = 20.0
_THROTTLED = re.compile("Throttl|TooManyRequests")
#: The names of services in AWS_ENDPOINT_URL_<name>, by their names for signing, with which their regional host names begin.
_ENDPOINTS = {"codeartifact": "CODEARTIFACT", "secretsmanager": "SECRETS_MANAGER", "ssm": "SSM"}
_ARN = re.compile(r"^arn:[^:]+:(ssm|secretsmanager):([^:]+):\d{12}:(?:parameter(?=/)|secret:)(.+)$")


class AwsError(OSError):
    """An error status of a service. Its text is the code of the error without the message, which may quote the request of a denied call."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code or "HTTP %d" % status)
        self.passes = status in RETRIED or _THROTTLED.search(code) is not None


def call_aws(service: str, region: str, environ: Mapping[str, str], **request: Any) -> Dict[str, Any]:
    """Returns the parsed response. Raises AwsError for an error status, OSError without a response, ValueError for one that is not JSON.

    `request`: the parameters `method`, `path`, `query`, `headers` and `body` of `_send`.
    """
    import http.client

    attempt = 0
    while True:
        attempt += 1
        try:
            try:
                return _send(service, region, environ, **request)
            except http.client.HTTPException as error:
                raise ConnectionError("the response broke off: %s" % error) from error
        except AwsError as error:
            if attempt == ATTEMPTS or not error.passes:
                raise
        except OSError:
            if attempt >= ATTEMPTS_WITHOUT_RESPONSE:
                raise
        sleep(min(LONGEST_DELAY_SECONDS, 0.2 * 2**attempt) * random.uniform(0.5, 1.0))


def _send(
    service: str, region: str, environ: Mapping[str, str], method: str = "POST", path: str = "/", query: Mapping[str, str] = {},
    headers: Mapping[str, str] = {}, body: bytes = b"",
) -> Dict[str, Any]:  # fmt: skip
    import urllib.error
    import urllib.request

    base = own_endpoint(environ, _ENDPOINTS[service]) or "https://%s.%s.%s" % (service, region, domain_of(region))
    search = canonical_query(query)
    digest, credentials, now = hashlib.sha256(body).hexdigest(), load_credentials(environ), datetime.now(timezone.utc)
    signed = signed_headers(method, urlsplit(base).netloc, path, search, headers, digest, credentials, region, now, service)
    address = base + path + ("?" + search if search else "")
    sent = urllib.request.Request(address, data=body or None, headers=signed, method=method)
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


def _read_one(reference: str, environ: Mapping[str, str]) -> str:
    """The value of an ARN, a parameter name (begins with /) or a secret name."""
    arn = _ARN.match(reference)
    service, region, name = (
        arn.groups() if arn else ("ssm" if reference.startswith("/") else "secretsmanager", region_of(environ), reference)
    )

    def call(operation: str, **body: Any) -> Dict[str, Any]:
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": operation}
        return call_aws(service, region, environ, headers=headers, body=json.dumps(body).encode())

    if service == "ssm":
        # The API accepts the ARN only for a parameter shared by another account; a parameter of this account is read by name.
        return str(call("AmazonSSM.GetParameter", Name=name, WithDecryption=True)["Parameter"]["Value"])
    return str(call("secretsmanager.GetSecretValue", SecretId=reference)["SecretString"])


def _why(error: Exception) -> str:
    if isinstance(error, AwsError):
        return str(error)
    return "it holds no text" if isinstance(error, KeyError) else type(error).__name__ + ": " + str(error)


def read_secrets(references: Mapping[str, str], environ: Mapping[str, str]) -> Dict[str, str]:
    """Returns the values by variable name, which no output shows from now on.

    Raises DriverError (77) with every secret that cannot be read.
    """
    values: Dict[str, str] = {}
    issues = []
    for name, reference in references.items():
        try:
            value = _read_one(reference, environ)
        except (OSError, ValueError, KeyError) as error:
            issues.append("secrets.%s: %s must be readable with the role of the job (%s)" % (name, reference, _why(error)))
            continue
        if len(value) < SHORTEST_SECRET:
            issues.append("secrets.%s: %s must have at least %d characters, so that it can be masked" % (name, reference, SHORTEST_SECRET))
            continue
        hide(value)
        values[name] = value
    if issues:
        raise DriverError("; ".join(issues))
    log("secrets: %s" % ", ".join(sorted(values)))
    return values
