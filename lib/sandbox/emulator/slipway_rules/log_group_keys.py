"""A log group can be encrypted with a key only if the key's policy allows CloudWatch Logs of the Region to use it.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html: the principal is `logs.<region>.amazonaws.com`, and
the log group is sent as the encryption context `aws:logs:arn`.
"""

from ministack.core.responses import error_response_json, get_account_id, get_region
from ministack.services import cloudwatch_logs
from ministack.services.cloudformation import provisioners

from slipway_rules.hooks import failed, wrap
from slipway_rules.policies import ServiceCall, key_allows

ACTIONS = ("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey")


def refusal(name: str, key: str | None) -> str | None:
    if not key:
        return None
    group = f"arn:aws:logs:{get_region()}:{get_account_id()}:log-group:{name}"
    call = ServiceCall(f"logs.{get_region()}.amazonaws.com", group, get_account_id(), {"kms:EncryptionContext:aws:logs:arn": group})
    if all(key_allows(key, action, call) for action in ACTIONS):
        return None
    return f"The specified KMS key does not exist or is not allowed to be used with Arn '{group}'"


def call_group(original, data):
    reason = refusal(data.get("logGroupName", ""), data.get("kmsKeyId"))
    return error_response_json("InvalidParameterException", reason, 400) if reason else original(data)


def make_group(original, logical_id, props, stack_name):
    name = props.get("LogGroupName") or f"/aws/cloudformation/{stack_name}/{logical_id}"
    if reason := refusal(name, props.get("KmsKeyId")):
        raise failed("AWS::Logs::LogGroup", reason, "InvalidRequest")
    return original(logical_id, props, stack_name)


def install() -> None:
    wrap(cloudwatch_logs, "_create_log_group", call_group)
    wrap(provisioners, "_cwlogs_create", make_group)
