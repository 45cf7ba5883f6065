"""What the Python client says of calls that fail: the command line's words."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "clients/python/src"))
exceptions = pytest.importorskip("botocore.exceptions")

from slipway._service_errors import service_error  # noqa: E402
from slipway.errors import ServiceError  # noqa: E402

WORDS = (ROOT / "lib/cli/aws-errors.ts").read_text()


def refused(code: str, message: str = "", status: int = 400) -> Any:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Ask")


@pytest.mark.parametrize(
    ("error", "begin", "got", "end"),
    [
        (refused("AccessDenied", "you may not"), "must be permitted", "you may not", "ask the platform team for the permission"),
        (refused("AccessDeniedException", "no"), "must be permitted", "no", "ask the platform team for the permission"),
        (refused("403", "", 403), "must be permitted", "403", "ask the platform team for the permission"),
        (refused("ExpiredToken", "old", 403), "must have valid AWS credentials", "An error", "sign in, or set AWS_PROFILE"),
        (exceptions.NoCredentialsError(), "must have valid AWS credentials", "Unable to locate", "sign in, or set AWS_PROFILE"),
        (exceptions.EndpointConnectionError(endpoint_url="https://x"), "must reach the service", "EndpointConnectionError",
         "check the network, the region and AWS_ENDPOINT_URL"),
        (exceptions.ReadTimeoutError(endpoint_url="https://x"), "must reach the service", "ReadTimeoutError",
         "check the network, the region and AWS_ENDPOINT_URL"),
        (refused("NoSuchBucket"), "must name a bucket that exists", "one that does not", "check its name"),
        (refused("SlowDown", "too much", 503), "failed", "SlowDown: too much", "try again"),
        (exceptions.BotoCoreError(), "failed", "An unspecified error", "try again"),
    ],
)  # fmt: skip
def test_says_what_must_hold_what_came_and_what_to_do(error: Exception, begin: str, got: str, end: str) -> None:
    found = service_error("reading s3://b/k", error, "; left something")
    assert isinstance(found, ServiceError)
    text = str(found)
    assert text.startswith(f"reading s3://b/k: {begin}, got {got}") and text.endswith(f"; left something; {end}")
    assert begin in WORDS and end in WORDS, "the command line says it otherwise"
