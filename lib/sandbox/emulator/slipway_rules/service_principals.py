"""A service can use a customer's topic, queue or function only if the resource's policy, and the policy of its key, allow the service.

- An alarm publishes as cloudwatch.amazonaws.com; whether its action succeeded is recorded only in the alarm's history:
  https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger
- An event rule sends as events.amazonaws.com: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html
- A topic sends to queues and functions as sns.amazonaws.com, a bucket as s3.amazonaws.com:
  https://docs.aws.amazon.com/sns/latest/dg/subscribe-sqs-queue-to-sns-topic.html,
  https://docs.aws.amazon.com/AmazonS3/latest/userguide/grant-destinations-permissions-to-s3.html
- Encryption: the key's policy must name the service too. EventBridge sends topics no aws:SourceArn and aws:SourceAccount with it:
  https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services

MiniStack evaluates the policies of SNS and SQS only with enforcement, and never for alarms and event rules.
"""

import json
import logging
import time

from ministack.core.arn import ArnParseError, parse_arn
from ministack.core.responses import get_account_id
from ministack.services import cloudwatch, eventbridge, lambda_svc, s3, sns, sqs
from ministack.services.cloudformation import provisioners

from slipway_rules.hooks import wrap
from slipway_rules.policies import ServiceCall, may_use_key, policy_allows

logger = logging.getLogger("slipway.rules")

ALARMS, EVENTS, TOPICS, BUCKETS = (f"{name}.amazonaws.com" for name in ("cloudwatch", "events", "sns", "s3"))


def topic_refusal(topic_arn: str, call: ServiceCall) -> str | None:
    """Why a service may not publish to a topic; None when it may."""
    attributes = (sns._topic_by_arn_any_scope(topic_arn) or {}).get("attributes", {})
    if not policy_allows(attributes.get("Policy"), "sns:Publish", topic_arn, call):
        return f"Resource: {call.source_arn} is not authorized to perform: SNS:Publish on resource: {topic_arn}"
    if not may_use_key(attributes.get("KmsMasterKeyId"), call):
        return f"{call.service} does not have authorization to access the SNS topic encryption key."
    return None


def queue_refusal(queue_arn: str, call: ServiceCall) -> str | None:
    """Why a service may not send to a queue; None when it may."""
    attributes = (sqs._queue_by_arn(queue_arn) or {}).get("attributes", {})
    if not policy_allows(attributes.get("Policy"), "sqs:SendMessage", queue_arn, call):
        return f"{call.source_arn} is not authorized to perform: sqs:SendMessage on resource: {queue_arn}"
    if not may_use_key(attributes.get("KmsMasterKeyId"), call):
        return f"{call.service} may not use the key of {queue_arn}"
    return None


def function_refusal(function_arn: str, call: ServiceCall) -> str | None:
    """Why a service may not invoke a function (or the alias or version that the ARN names); None when it may."""
    unqualified = ":".join(function_arn.split(":")[:7])
    found = lambda_svc.function_policy_for_arn(unqualified)
    if found is None or policy_allows(found[0], "lambda:InvokeFunction", function_arn, call):
        return None  # MiniStack itself reports a function that is not there
    return f"{call.source_arn} is not authorized to perform: lambda:InvokeFunction on resource: {function_arn}"


REFUSALS = {"lambda": function_refusal, "sns": topic_refusal, "sqs": queue_refusal}
ACTION_FIELDS = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}


def dispatch_alarm(original, alarm, old_state, new_state, reason):
    call = ServiceCall(ALARMS, alarm.get("AlarmArn", ""), get_account_id())
    field = ACTION_FIELDS.get(new_state, "")
    topics = [action for action in alarm.get(field) or [] if cloudwatch._is_sns_action_arn(action)]
    refused = {topic: why for topic in topics if (why := topic_refusal(topic, call))}
    for topic in topics if alarm.get("ActionsEnabled", True) else []:
        record_action(alarm, topic, refused.get(topic))
    kept = [action for action in alarm.get(field) or [] if action not in refused]
    original({**alarm, field: kept} if refused else alarm, old_state, new_state, reason)


def record_action(alarm: dict, topic: str, why: str | None) -> None:
    """Adds an action to the history of its alarm, in which MiniStack records only states; `why` it failed, if it did."""
    summary = f'Failed to execute action {topic}. Received error: "{why}"' if why else f"Successfully executed action {topic}"
    cloudwatch._history_entries().append(
        {
            "AlarmName": alarm.get("AlarmName", ""),
            "AlarmType": "MetricAlarm",
            "Timestamp": cloudwatch._ts_iso(time.time()),
            "HistoryItemType": "Action",
            "HistorySummary": summary,
            "HistoryData": json.dumps({"actionState": "Failed" if why else "Succeeded", "notificationResource": topic, "error": why}),
        }
    )


def invoke_target(original, target, event, rule, view=None):
    arn = target.get("Arn", "")
    try:
        service = parse_arn(arn).service
    except ArnParseError:
        service = ""
    call = ServiceCall(EVENTS, rule.get("Arn", ""), get_account_id(), sends_source_to_kms=service != "sns")
    if refusal := REFUSALS.get(service, lambda *_: None)(arn, call):
        logger.warning("FailedInvocations of rule %s: %s", rule.get("Name"), refusal)
        return None
    return original(target, event, rule, view)


def allows(refusal_of):
    """The function of MiniStack that asks whether a policy allows a call, by what refuses it."""
    return lambda _original, arn, service, source_arn, source_account: (
        refusal_of(arn, ServiceCall(service, source_arn, source_account)) is None
    )


def may_invoke(function_arn: str, service: str, source_arn: str) -> bool:
    refusal = function_refusal(function_arn, ServiceCall(service, source_arn, get_account_id()))
    if refusal:
        logger.warning("%s: %s", service, refusal)
    return refusal is None


def topic_to_function(original, endpoint, envelope, topic_arn, *more):
    return original(endpoint, envelope, topic_arn, *more) if may_invoke(endpoint, TOPICS, topic_arn) else None


def bucket_to_function(original, arn, event_payload, bucket_region):
    record = (event_payload.get("Records") or [{}])[0]
    bucket = record.get("s3", {}).get("bucket", {}).get("arn", "")
    return original(arn, event_payload, bucket_region) if may_invoke(arn, BUCKETS, bucket) else None


def make_topic(original, logical_id, props, stack_name):
    return with_key(props, original(logical_id, props, stack_name))


def update_topic(original, physical_id, old_props, new_props, *more, **options):
    return with_key(new_props, original(physical_id, old_props, new_props, *more, **options))


def with_key(props: dict, made: tuple) -> tuple:
    """Applies the key, which MiniStack does not read from a stack."""
    sns._topics[made[0]]["attributes"]["KmsMasterKeyId"] = props.get("KmsMasterKeyId") or ""
    return made


def install() -> None:
    wrap(provisioners, "_sns_create", make_topic)
    wrap(provisioners, "_sns_update", update_topic)
    wrap(cloudwatch, "_dispatch_alarm_actions", dispatch_alarm)
    wrap(eventbridge, "_invoke_target", invoke_target)
    wrap(sqs, "queue_policy_allows", allows(queue_refusal))
    wrap(sns, "topic_policy_allows", allows(topic_refusal))
    wrap(sns, "_deliver_to_lambda", topic_to_function)
    wrap(s3, "_deliver_event_to_lambda", bucket_to_function)
