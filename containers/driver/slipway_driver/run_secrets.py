"""Secrets of the run file: read in the container with the role of the job, passed to the script as environment variables, and masked in all
output.

Sources: https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html and
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html (2026-11-22).
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Mapping, NamedTuple

from slipway_driver.aws_call import AwsError, AwsRequest, call_aws
from slipway_driver.exit_codes import ENVIRONMENT, DriverError
from slipway_driver.log import SHORTEST_SECRET, hide, log
from slipway_s3.endpoint import region_of

_PARAMETER_ARN = re.compile(r"^arn:[^:]+:ssm:([^:]+):\d{12}:parameter/.+$")
_SECRET_ARN = re.compile(r"^arn:[^:]+:secretsmanager:([^:]+):\d{12}:secret:.+$")


class _Service(NamedTuple):
    """`endpoint`: the name in AWS_ENDPOINT_URL_<name>."""

    name: str
    operation: str
    endpoint: str

    def call(self, body: Mapping[str, Any], region: str, environ: Mapping[str, str]) -> Dict[str, Any]:
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": self.operation}
        return call_aws(AwsRequest(self.name, self.endpoint, "POST", "/", headers=headers, body=json.dumps(body).encode()), region, environ)


_SECRETS_MANAGER = _Service("secretsmanager", "secretsmanager.GetSecretValue", "SECRETS_MANAGER")
_PARAMETERS = _Service("ssm", "AmazonSSM.GetParameter", "SSM")


def _read_one(reference: str, environ: Mapping[str, str]) -> str:
    """The value of an ARN, a parameter name (begins with /) or a secret name."""
    parameter, secret = _PARAMETER_ARN.match(reference), _SECRET_ARN.match(reference)
    if parameter or reference.startswith("/"):
        region = parameter.group(1) if parameter else region_of(environ)
        # The API accepts the ARN only for a parameter shared by another account; a parameter of this account is read by name.
        name = reference.split(":parameter", 1)[1] if parameter else reference
        return str(_PARAMETERS.call({"Name": name, "WithDecryption": True}, region, environ)["Parameter"]["Value"])
    region = secret.group(1) if secret else region_of(environ)
    return str(_SECRETS_MANAGER.call({"SecretId": reference}, region, environ)["SecretString"])


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
        raise DriverError(ENVIRONMENT, "; ".join(issues))
    log("secrets: %s" % ", ".join(sorted(values)))
    return values
