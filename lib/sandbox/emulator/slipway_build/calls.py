"""Calls of the build tools to the embedded AWS, with the credentials of the build."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn


def client(service: str, region: str | None = None, environment: Mapping[str, str] = os.environ):
    """A client with the endpoint, credentials and certificate authorities of an environment."""
    import botocore.session  # here: most commands of a build call nothing, and it takes most of their time

    return botocore.session.Session().create_client(
        service,
        region_name=region or environment["AWS_REGION"],
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=environment["AWS_SESSION_TOKEN"],
        verify=environment.get("AWS_CA_BUNDLE"),
    )


def end(message: str, status: int = 1) -> NoReturn:
    """Exits the program with an error message."""
    sys.stderr.write(f"{message}\n")
    raise SystemExit(status)
