"""Resource policies and key policies for calls that an AWS service makes for one of its resources. Uses MiniStack's own evaluator.

A service principal does not belong to an account: only a statement that names it, or everybody, allows its calls
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html#principal-services).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy
from ministack.core.responses import get_region
from ministack.services import kms


@dataclass(frozen=True)
class ServiceCall:
    """A call that a service makes on behalf of one of its resources."""

    service: str
    """Service principal, such as `events.amazonaws.com`."""
    source_arn: str
    source_account: str
    context: dict[str, str] = field(default_factory=dict)
    """Condition keys besides aws:SourceArn, aws:SourceAccount and aws:SourceOwner."""
    sends_source_to_kms: bool = True
    """Whether aws:SourceArn and aws:SourceAccount are also sent to the key policy."""


def policy_allows(policy: str | dict | None, action: str, resource_arn: str, call: ServiceCall, *, with_source: bool = True) -> bool:
    """Whether a resource's policy allows the call; without a policy nothing is allowed."""
    source = {"aws:sourcearn": call.source_arn, "aws:sourceaccount": call.source_account, "aws:sourceowner": call.source_account}
    requested = EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=resource_arn,
        region=get_region(),
        secure_transport=True,
        service_context={**(source if with_source else {}), **{key.lower(): value for key, value in call.context.items()}},
    )
    return bool(policy) and evaluate_resource_policy(policy, requested, service=call.service).decision == "Allow"


def key_allows(key: str, action: str, call: ServiceCall) -> bool:
    """Whether the policy of a key (id, ARN or alias) allows the service to use it. AWS managed keys (`alias/aws/...`) can be used by one
    service only.
    """
    record = kms._resolve_key(key)
    if record is None or "alias/aws/" in key:
        return False
    return policy_allows(record.get("Policy"), action, record["Arn"], call, with_source=call.sends_source_to_kms)


def may_use_key(key: str | None, call: ServiceCall) -> bool:
    """Whether a service may send a message to a resource that is encrypted with this key.

    It needs kms:GenerateDataKey* and kms:Decrypt:
    https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services
    """
    return not key or all(key_allows(key, action, call) for action in ("kms:GenerateDataKey", "kms:Decrypt"))
