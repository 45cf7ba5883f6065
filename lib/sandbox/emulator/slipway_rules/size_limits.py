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
from types import ModuleType

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


def too_large(quota: str, document: str | dict | None, limit: int) -> str | None:
    return f"Cannot exceed quota for {quota}: {limit}" if len(compact(document)) > limit else None


def inline_policies(documents: list, role: str | None = None, but: str | None = None) -> str | None:
    """The problem of a role's inline policies: the given ones, and those that the role already has except `but`."""
    record = iam._roles.get(role) if role else None
    there = [document for name, document in ((record or {}).get("InlinePolicies") or {}).items() if name != but]
    size = sum(len(compact(document)) for document in [*there, *documents])
    return f"Maximum policy size of {INLINE_POLICIES} bytes exceeded for role {role or ''}".strip() if size > INLINE_POLICIES else None


def managed_policy(document: str | dict | None) -> str | None:
    return too_large("PolicySize", document, MANAGED_POLICY)


def trust_policy(document: str | dict | None) -> str | None:
    return too_large("ACLSizePerRole", document, TRUST_POLICY)


def environment(function: dict) -> str | None:
    if len(compact((function.get("Environment") or {}).get("Variables"))) <= ENVIRONMENT_BYTES:
        return None
    return f"Lambda was unable to configure your environment variables because they exceeded the {ENVIRONMENT_BYTES}-byte limit."


def parameter(given: dict) -> str | None:
    tier = given.get("Tier") or "Standard"
    limit = PARAMETER_BYTES.get(tier, PARAMETER_BYTES["Standard"])
    if len(str(given.get("Value", "")).encode()) <= limit:
        return None
    return f"{tier} tier parameters support a maximum parameter value of {limit} characters."


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
    "AWS::Lambda::Function": environment,
    "AWS::S3::BucketPolicy": lambda p: too_long("The bucket policy", p.get("PolicyDocument"), BUCKET_POLICY_BYTES),
    "AWS::SNS::TopicPolicy": lambda p: too_long("The topic policy", p.get("PolicyDocument"), TOPIC_POLICY_BYTES),
    "AWS::SSM::Parameter": parameter,
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


def guard(module: ModuleType, name: str, problem_of: Callable[..., str | None], refuse: Callable[[str], object]) -> None:
    """Refuses the calls of a function with whose arguments there is a problem."""

    def guarded(original, *arguments):
        problem = problem_of(*arguments)
        return refuse(problem) if problem else original(*arguments)

    wrap(module, name, guarded)


def role_policy(p) -> str | None:
    document, role, name = (iam._p(p, key) for key in ("PolicyDocument", "RoleName", "PolicyName"))
    return inline_policies([document], role, name)


def function_environment(*arguments) -> str | None:
    return environment(next((argument for argument in arguments if isinstance(argument, dict)), {}))


def bucket_policy(_name, body) -> str | None:
    return too_long("The bucket policy", body.decode("utf-8", "replace"), BUCKET_POLICY_BYTES)


def of_iam(problem: str):
    return iam._error(409, "LimitExceeded", problem, ns="iam")


def install() -> None:
    wrap(stacks, "_provision_resource", provision)
    wrap(stacks, "_update_resource", update)
    guard(iam, "_put_role_policy", role_policy, of_iam)
    for name in ("_create_policy", "_create_policy_version"):
        guard(iam, name, lambda p: managed_policy(iam._p(p, "PolicyDocument")), of_iam)
    guard(iam, "_create_role", lambda p: trust_policy(iam._p(p, "AssumeRolePolicyDocument")), of_iam)
    guard(ssm, "_put_parameter", parameter, lambda problem: error_response_json("ValidationException", problem, 400))
    guard(s3, "_put_bucket_policy", bucket_policy, lambda problem: s3._error("PolicyTooLarge", problem, 400))
    for name in ("_create_function", "_update_config"):
        guard(lambda_svc, name, function_environment, lambda problem: error_response_json("InvalidParameterValueException", problem, 400))
