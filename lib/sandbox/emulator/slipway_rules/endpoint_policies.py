"""A request through an interface endpoint must also be allowed by the endpoint's policy.

https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-access.html: without a policy of its own, an endpoint allows every
principal of every account. The sandbox has no network, so a request names its endpoint itself: by its id in the header
`x-slipway-vpc-endpoint`. Evaluated only with enforcement, because MiniStack determines action and resource only then.
"""

import contextvars

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id
from ministack.services import ec2

from slipway_rules.hooks import wrap

HEADER = b"x-slipway-vpc-endpoint"
_endpoint: contextvars.ContextVar[str] = contextvars.ContextVar("slipway_vpc_endpoint", default="")


def note_endpoint(scope: dict) -> None:
    """Stores the endpoint of the current request; launch.py calls it for each request."""
    _endpoint.set(dict(scope.get("headers", ())).get(HEADER, b"").decode("latin-1"))


def refusal(access_key_id, action, region, resource_arn):
    """The denial by the endpoint's policy; None when the request came through no endpoint or its policy allows it."""
    record = next((found for found in ec2._vpc_endpoints._data.values() if found.get("VpcEndpointId") == _endpoint.get()), None)
    policy = (record or {}).get("PolicyDocument")
    if not policy:
        return None
    account = get_account_id()
    credential = iam_evaluator.authenticate(access_key_id, account)
    principal = iam_evaluator.resolve_principal(access_key_id, account, credential)
    if isinstance(principal, iam_evaluator.AuthError):
        return principal
    requested = iam_evaluator.EvalContext(
        principal_arn=principal.arn,
        principal_type=principal.type,
        principal_account=principal.account,
        action=action,
        resource_arn=resource_arn,
        region=region,
        service_context={"aws:sourcevpce": _endpoint.get(), "aws:sourcevpc": record.get("VpcId")},
        principal_keys=principal.keys,
    )
    result = iam_evaluator.evaluate_resource_policy(policy, requested)
    result.principal_arn = principal.arn
    return None if result.decision == "Allow" else result


def enforce(original, access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
    denied = refusal(access_key_id or "", iam_action, region, resource_arn) if _endpoint.get() else None
    return denied or original(access_key_id, iam_action, service, region, resource_arn=resource_arn, service_context=service_context)


def create_endpoint(original, p):
    """Applies the policy, which MiniStack takes only from stacks and ModifyVpcEndpoint."""
    before = set(ec2._vpc_endpoints)
    answer = original(p)
    for made in set(ec2._vpc_endpoints) - before:
        ec2._vpc_endpoints[made]["PolicyDocument"] = ec2._p(p, "PolicyDocument") or None
    return answer


def install() -> None:
    wrap(ec2, "_create_vpc_endpoint", create_endpoint)
    wrap(iam_evaluator, "enforce", enforce)
