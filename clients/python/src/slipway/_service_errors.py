"""A failed call: what was asked, what went wrong, what to do. A test (test_client_errors.py) holds the words to the command line's."""

from __future__ import annotations

import os
import re
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from .errors import ServiceError, UsageError

_CREDENTIALS = ("ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId", "AuthFailure",
                "InvalidAccessKeyId", "IncompleteSignature")  # fmt: skip
#: Classes of botocore.exceptions, by their names: what they have in common is BotoCoreError alone.
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "SSOError", "TokenRetrievalError",
                   "ProfileNotFound"}  # fmt: skip
_UNREACHED = {"ConnectionError", "HTTPClientError"}
_REGION_FORM = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d")
_DENIED = ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation", "AuthorizationError", "Forbidden")


def is_denied(error: ClientError) -> bool:
    """Whether the caller may not do what it asked for. A HEAD of S3 is refused by its status alone."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return _code(error) in _DENIED or (status == 403 and _code(error) not in _CREDENTIALS)


def has_no_credentials(error: BaseException | None) -> bool:
    """Whether the process has no credentials that AWS accepts: every call fails in the same way."""
    if isinstance(error, ClientError):
        return _code(error) in _CREDENTIALS
    return bool(_kinds(error) & _NO_CREDENTIALS)


def _kinds(error: BaseException | None) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def new_session() -> Any:
    """A session in the region of the command line's own order: AWS_REGION, which boto3 does not read, before the others."""
    try:
        return boto3.session.Session(region_name=os.environ.get("AWS_REGION") or None)
    except BotoCoreError as error:
        raise service_error("reading the AWS configuration", error) from error


def region_of(session: Any, given: str | None) -> str:
    """The region of calls. Raises UsageError when there is none."""
    region = given or session.region_name or os.environ.get("AWS_REGION")
    if not region:
        raise UsageError("region: must be given, got nothing; name a region, or set AWS_REGION")
    if not _REGION_FORM.fullmatch(region):
        raise UsageError(f"region: must be a region such as us-west-2, got {region}; correct its name")
    return str(region)


def client_of(session: Any, service: str, region: str) -> Any:
    """A client of a service, which reads the configuration."""
    try:
        return session.client(service, region_name=region)
    except (BotoCoreError, ValueError) as error:
        raise service_error("reading the AWS configuration", error) from error


def service_error(doing: str, error: BotoCoreError | ClientError | ValueError, more: str = "") -> ServiceError:
    """The error to raise. `doing`: what was asked; `more`: what the failure left behind."""
    return ServiceError(f"{doing}: {_words(error, more)}")


def _words(error: BotoCoreError | ClientError | ValueError, more: str) -> str:
    kinds = _kinds(error)
    if "SSLError" in kinds:
        return (f"must present a certificate that is trusted here, got {error}{more}; "
                "name a file with the certificates of your proxy in AWS_CA_BUNDLE")  # fmt: skip
    if kinds & _UNREACHED:
        return f"must reach the service, got {type(error).__name__}{more}; check the network, the region, HTTPS_PROXY and AWS_ENDPOINT_URL"
    if has_no_credentials(error):
        profile = os.environ.get("AWS_PROFILE")
        got = f"profile {profile} (AWS_PROFILE): {error}{more}; sign in with it, or name one of aws configure list-profiles"
        return f"must have valid AWS credentials, got {got if profile else f'{error}{more}; sign in, or set AWS_PROFILE'}"
    if not isinstance(error, ClientError):
        return f"failed, got {error}{more}; try again"
    message = error.response.get("Error", {}).get("Message", "")
    if is_denied(error):
        return f"must be permitted, got {message or _code(error)}{more}; ask the platform team for the permission"
    if _code(error) == "NoSuchBucket":
        return f"must name a bucket that exists, got one that does not{more}; check its name"
    return f"failed, got {_code(error)}{message and f': {message}'}{more}; try again"


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
