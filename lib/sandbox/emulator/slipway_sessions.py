"""Sessions of roles for services of the embedded AWS: a training job, a build."""

from __future__ import annotations

import time

from ministack.core import responses
from ministack.services import sts


def assume(role: str, name: str, seconds: int) -> dict[str, str]:
    """Credentials of a role's session. The caller has checked the trust policy, because AssumeRole itself has no aws:SourceArn."""
    account = role.split(":")[4]
    key, secret, token = sts._gen_session_access_key(), sts._gen_secret(), sts._gen_session_token()
    responses.set_request_account_id(account)
    session = {
        "Arn": sts._assumed_role_arn(role, name)[0],
        "UserId": f"{sts._role_id(role)}:{name}",
        "SecretAccessKey": secret,
        "SessionToken": token,
        "Expiration": time.time() + seconds,
        "AccountId": account,
        "PrincipalType": "AssumedRole",
        "SourceAccessKeyId": account,
        "SourcePrincipalArn": f"arn:aws:iam::{account}:root",
        "SessionTags": [],
        "SessionPolicies": None,
    }
    sts.register_session(key, session)
    return {"accessKeyId": key, "secretAccessKey": secret, "sessionToken": token}
