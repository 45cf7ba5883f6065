"""An action without resource types is authorized on `*`, and the request context contains only condition keys that the action supports.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html: a statement
that names resources for such an action matches no request, and a condition on a key that is not sent is not met. `actions.json` contains
the entries of two editions of the Service Authorization Reference for the actions that Slipway uses; scripts/authorization-reference.py
writes it. If the editions differ, both must allow: an action whose resource type is newer than the older edition needs `*` as well.

An operation that is not an action is authorized as the action that allows it. A batch operation of SQS counts as the single one:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api.html
"""

import json
import re
from dataclasses import replace
from pathlib import Path

from ministack.core import iam_evaluator

from slipway_rules.hooks import wrap

FACTS = json.loads((Path(__file__).parent / "actions.json").read_text(encoding="utf-8"))
WITHOUT_RESOURCE = {action.lower() for action in FACTS["withoutResource"]}
KEYS = {action.lower(): [key.lower() for key in keys] for action, keys in FACTS["keys"].items()}
#: The actions that allow operations of other names, in lower case.
ACTIONS = {f"sqs:{action.lower()}batch": f"sqs:{action}" for action in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")}
#: Global keys that are in a request only where the reference lists them for the action.
SENT_WITH_SOME = re.compile(r"^aws:(requesttag/|resourcetag/|tagkeys$)")


def resources_of(action: str, resource_arn: str) -> list[str]:
    """The resources on each of which a request must be allowed."""
    return list(dict.fromkeys([resource_arn, "*"])) if action.lower() in WITHOUT_RESOURCE else [resource_arn]


def supported(action: str, context: dict) -> dict:
    """The context without the keys that the action does not support; the complete context for an unknown action."""
    known = KEYS.get(action.lower())
    if known is None:
        return context
    return {key: value for key, value in context.items() if is_supported(known, key.lower())}


def is_supported(known: list[str], key: str) -> bool:
    if key.startswith("aws:") and not SENT_WITH_SOME.match(key):
        return True
    return any(key.startswith(name.split("${")[0]) if "${" in name else key == name for name in known)


def evaluate(original, ctx, policies, *limits):
    ctx = replace(ctx, action=ACTIONS.get(ctx.action.lower(), ctx.action))
    context = {**supported(ctx.action, ctx.service_context), **kept_absent(ctx.service_context)}
    requested = [replace(ctx, resource_arn=resource, service_context=context) for resource in resources_of(ctx.action, ctx.resource_arn)]
    results = [original(each, policies, *limits) for each in requested]
    return next((result for result in results if result.decision != "Allow"), results[0])


def kept_absent(context: dict) -> dict:
    """Keys that MiniStack sets to None to mark them as absent."""
    return {key: None for key, value in context.items() if value is None}


def install() -> None:
    wrap(iam_evaluator, "evaluate", evaluate)
