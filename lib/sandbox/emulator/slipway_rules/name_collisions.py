"""A resource whose name exists already is not created, whichever stack owns the existing one: a stack does not overwrite a resource that an
earlier stack retained.

https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract.html: a create handler fails with
AlreadyExists if the resource existed before. MiniStack itself does this for buckets, parameters and build projects. On AWS, names that
CloudFormation generates contain a random part, so that only names in the template can collide.
"""

from collections.abc import Callable

from ministack.services import (
    cloudwatch,
    cloudwatch_logs,
    dynamodb,
    ecr,
    eventbridge,
    iam,
    kms,
    lambda_svc,
    sns,
    sqs,
    stepfunctions,
)
from ministack.services.cloudformation import provisioners, stacks

from slipway_rules.hooks import failed, wrap


def policy_exists(props: dict) -> bool:
    path = props.get("Path") or "/"
    return any(arn.endswith(f":policy{path}{props['ManagedPolicyName']}") for arn in iam._policies)


def machine_exists(props: dict) -> bool:
    return any(arn.endswith(f":stateMachine:{props['StateMachineName']}") for arn in stepfunctions._state_machines)


def rule_exists(props: dict) -> bool:
    return eventbridge._rule_key(props["Name"], provisioners._eb_rule_bus_name(props)) in eventbridge._rules


#: Type -> (property with the name, whether a resource of the name is there).
NAMED: dict[str, tuple[str, Callable[[dict], bool]]] = {
    "AWS::CloudWatch::Alarm": ("AlarmName", lambda p: p["AlarmName"] in cloudwatch._alarms),
    "AWS::CloudWatch::Dashboard": ("DashboardName", lambda p: p["DashboardName"] in cloudwatch._dashboards),
    "AWS::DynamoDB::Table": ("TableName", lambda p: p["TableName"] in dynamodb._tables),
    "AWS::ECR::Repository": ("RepositoryName", lambda p: p["RepositoryName"] in ecr._repositories),
    "AWS::Events::Rule": ("Name", rule_exists),
    "AWS::IAM::ManagedPolicy": ("ManagedPolicyName", policy_exists),
    "AWS::IAM::Role": ("RoleName", lambda p: p["RoleName"] in iam._roles),
    "AWS::KMS::Alias": ("AliasName", lambda p: kms._alias_arn(p["AliasName"]) in kms._aliases),
    "AWS::Lambda::Function": ("FunctionName", lambda p: p["FunctionName"] in lambda_svc._functions),
    "AWS::Logs::LogGroup": ("LogGroupName", lambda p: p["LogGroupName"] in cloudwatch_logs._log_groups),
    "AWS::SNS::Topic": ("TopicName", lambda p: any(arn.endswith(f":{p['TopicName']}") for arn in sns._topics)),
    "AWS::SQS::Queue": ("QueueName", lambda p: any(url.endswith(f"/{p['QueueName']}") for url in sqs._queues)),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", machine_exists),
}


def provision(original, resource_type, logical_id, props, stack_name):
    name_property, exists = NAMED.get(resource_type, ("", None))
    name = props.get(name_property)
    if exists and isinstance(name, str) and exists(props):
        reason = f"Resource of type '{resource_type}' with identifier '{name}' already exists."
        raise failed(resource_type, reason, "AlreadyExists")
    return original(resource_type, logical_id, props, stack_name)


def install() -> None:
    # Here, and not in provisioners: an update of a type without an update handler creates over what the stack owns.
    wrap(stacks, "_provision_resource", provision)
