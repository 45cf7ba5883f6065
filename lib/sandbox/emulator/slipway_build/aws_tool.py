"""`aws` in a build: runs `aws ecr get-login-password` against the embedded AWS and passes every other command to the machine's AWS CLI."""

from __future__ import annotations

import base64
import os
import shutil
import sys

import botocore.exceptions

from slipway_build.calls import client, end


def main(arguments: list[str]) -> None:
    """Runs one command."""
    if arguments[:2] != ["ecr", "get-login-password"]:
        other = shutil.which("aws", path=os.environ["PATH"].split(os.pathsep, 1)[1])
        if other is None:
            end(f"aws: only ecr get-login-password is there, got {' '.join(arguments[:2])}; install the AWS CLI on this machine", 127)
        os.execv(other, [other, *arguments])
    region = arguments[arguments.index("--region") + 1] if "--region" in arguments else None
    try:
        found = client("ecr", region).get_authorization_token()["authorizationData"][0]
    except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
        end(f"aws: {error}", 254)
    sys.stdout.write(base64.b64decode(found["authorizationToken"]).decode().split(":", 1)[1] + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
