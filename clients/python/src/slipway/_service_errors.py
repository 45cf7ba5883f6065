"""A failed call: what was asked, what went wrong, what to do. A test (test_client_errors.py) holds the words to the command line's."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from .errors import ServiceError

_CREDENTIALS = ("ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId")
#: Classes of botocore.exceptions, by their names: what they have in common is BotoCoreError alone.
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "SSOError", "TokenRetrievalError"}
_UNREACHED = {"ConnectionError", "HTTPClientError"}
_DENIED = ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation", "AuthorizationError", "Forbidden")


def is_denied(error: ClientError) -> bool:
    """Whether the caller may not do what it asked for. A HEAD of S3 is refused by its status alone."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return _code(error) in _DENIED or (status == 403 and _code(error) not in _CREDENTIALS)


def service_error(doing: str, error: BotoCoreError | ClientError, more: str = "") -> ServiceError:
    """The error to raise. `doing`: what was asked; `more`: what the failure left behind."""
    return ServiceError(f"{doing}: {_words(error, more)}")


def _words(error: BotoCoreError | ClientError, more: str) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _UNREACHED:
        return f"must reach the service, got {type(error).__name__}{more}; check the network, the region and AWS_ENDPOINT_URL"
    if kinds & _NO_CREDENTIALS or (isinstance(error, ClientError) and _code(error) in _CREDENTIALS):
        return f"must have valid AWS credentials, got {error}{more}; sign in, or set AWS_PROFILE"
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
