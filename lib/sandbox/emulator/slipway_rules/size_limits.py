"""Size limits that AWS enforces and MiniStack does not, checked in stacks and in calls to IAM, Lambda, S3 and SSM.

- IAM: all inline policies of a role 10,240 characters, a managed policy 6,144, a trust policy 2,048, white space not counted:
  https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
- Lambda: environment 4 KB, resource policy 20 KB: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
- Parameter Store: 4 KB in the standard tier, 8 KB in the advanced one: https://docs.aws.amazon.com/general/latest/gr/ssm.html
- S3: bucket policy 20 KB: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html
- KMS: key policy 32 KB: https://docs.aws.amazon.com/kms/latest/developerguide/resource-limits.html
- SNS: topic policy 30 KB: https://docs.aws.amazon.com/general/latest/gr/sns.html

MiniStack itself enforces the limits of templates (51,200 bytes inline, 1 MB in S3), parameter values (4,096 bytes) and DynamoDB items.
"""

import json
from collections.abc import Callable

from ministack.core.responses import error_response_json
from ministack.services import iam, lambda_svc, s3, ssm
from ministack.services.cloudformation import stacks

from slipway_rules.hooks import failed, wrap

INLINE_POLICIES, MANAGED_POLICY, TRUST_POLICY = 10_240, 6_144, 2_048
ENVIRONMENT_BYTES, BUCKET_POLICY_BYTES, KEY_POLICY_BYTES, TOPIC_POLICY_BYTES = 4_096, 20_480, 32_768, 30_720
PARAMETER_BYTES = {"Standard": 4_096, "Advanced": 8_192, "Intelligent-Tiering": 8_192}


def compact(document: str | dict | None) -> str:
    """A policy without white space, whose size counts."""
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return str(document)
    return json.dumps(document or {}, separators=(",", ":"), ensure_ascii=False)


def too_long(what: str, document: str | dict | None, limit: int) -> str | None:
    size = len(compact(document).encode())
    return f"{what} has {size} of {limit} bytes" if size > limit else None


def inline_policies(documents: list, role: str | None = None, but: str | None = None) -> str | None:
    """The problem of a role's inline policies: the given ones, and those that the role already has except `but`."""
    record = iam._roles.get(role) if role else None
    there = [document for name, document in ((record or {}).get("InlinePolicies") or {}).items() if name != but]
    size = sum(len(compact(document)) for document in [*there, *documents])
    return f"Maximum policy size of {INLINE_POLICIES} bytes exceeded for role {role or ''}".strip() if size > INLINE_POLICIES else None


def managed_policy(document: str | dict | None) -> str | None:
    return f"Cannot exceed quota for PolicySize: {MANAGED_POLICY}" if len(compact(document)) > MANAGED_POLICY else None


def trust_policy(document: str | dict | None) -> str | None:
    return f"Cannot exceed quota for ACLSizePerRole: {TRUST_POLICY}" if len(compact(document)) > TRUST_POLICY else None


def environment(variables: dict | None) -> str | None:
    if len(compact(variables)) <= ENVIRONMENT_BYTES:
        return None
    return f"Lambda was unable to configure your environment variables because they exceeded the {ENVIRONMENT_BYTES}-byte limit."


def parameter(value: str, tier: str | None) -> str | None:
    limit = PARAMETER_BYTES.get(tier or "Standard", PARAMETER_BYTES["Standard"])
    if len(value.encode()) <= limit:
        return None
    return f"{tier or 'Standard'} tier parameters support a maximum parameter value of {limit} characters."


def role_problem(props: dict) -> str | None:
    return trust_policy(props.get("AssumeRolePolicyDocument")) or inline_policies(
        [policy.get("PolicyDocument") for policy in props.get("Policies") or []]
    )


def policy_problem(props: dict) -> str | None:
    roles, document, name = props.get("Roles") or [], props.get("PolicyDocument"), props.get("PolicyName")
    return next((problem for role in roles if (problem := inline_policies([document], role, name))), None)


#: Type -> the problem of its properties.
PROPERTIES: dict[str, Callable[[dict], str | None]] = {
    "AWS::IAM::ManagedPolicy": lambda p: managed_policy(p.get("PolicyDocument")),
    "AWS::IAM::Policy": policy_problem,
    "AWS::IAM::Role": role_problem,
    "AWS::KMS::Key": lambda p: too_long("The key policy", p.get("KeyPolicy"), KEY_POLICY_BYTES),
    "AWS::Lambda::Function": lambda p: environment((p.get("Environment") or {}).get("Variables")),
    "AWS::S3::BucketPolicy": lambda p: too_long("The bucket policy", p.get("PolicyDocument"), BUCKET_POLICY_BYTES),
    "AWS::SNS::TopicPolicy": lambda p: too_long("The topic policy", p.get("PolicyDocument"), TOPIC_POLICY_BYTES),
    "AWS::SSM::Parameter": lambda p: parameter(str(p.get("Value", "")), p.get("Tier")),
}


def provision(original, resource_type, logical_id, props, stack_name):
    require(resource_type, props)
    return original(resource_type, logical_id, props, stack_name)


def update(original, resource_type, physical_id, old_props, new_props, *more):
    require(resource_type, new_props)
    return original(resource_type, physical_id, old_props, new_props, *more)


def require(resource_type: str, props: dict) -> None:
    if problem := PROPERTIES.get(resource_type, lambda _: None)(props):
        raise failed(resource_type, problem, "InvalidRequest")


def put_role_policy(original, p):
    document, role, name = (iam._p(p, key) for key in ("PolicyDocument", "RoleName", "PolicyName"))
    problem = inline_policies([document], role, name)
    return iam._error(409, "LimitExceeded", problem, ns="iam") if problem else original(p)


def put_managed_policy(original, p):
    problem = managed_policy(iam._p(p, "PolicyDocument"))
    return iam._error(409, "LimitExceeded", problem, ns="iam") if problem else original(p)


def create_role(original, p):
    problem = trust_policy(iam._p(p, "AssumeRolePolicyDocument"))
    return iam._error(409, "LimitExceeded", problem, ns="iam") if problem else original(p)


def put_parameter(original, data):
    problem = parameter(str(data.get("Value", "")), data.get("Tier"))
    return error_response_json("ValidationException", problem, 400) if problem else original(data)


def put_bucket_policy(original, name, body):
    problem = too_long("The bucket policy", body.decode("utf-8", "replace"), BUCKET_POLICY_BYTES)
    return s3._error("PolicyTooLarge", problem, 400) if problem else original(name, body)


def configure_function(original, *arguments):
    data = next((argument for argument in arguments if isinstance(argument, dict)), {})
    problem = environment((data.get("Environment") or {}).get("Variables"))
    return error_response_json("InvalidParameterValueException", problem, 400) if problem else original(*arguments)


def install() -> None:
    wrap(stacks, "_provision_resource", provision)
    wrap(stacks, "_update_resource", update)
    wrap(iam, "_put_role_policy", put_role_policy)
    wrap(iam, "_create_policy", put_managed_policy)
    wrap(iam, "_create_policy_version", put_managed_policy)
    wrap(iam, "_create_role", create_role)
    wrap(ssm, "_put_parameter", put_parameter)
    wrap(s3, "_put_bucket_policy", put_bucket_policy)
    wrap(lambda_svc, "_create_function", configure_function)
    wrap(lambda_svc, "_update_config", configure_function)
