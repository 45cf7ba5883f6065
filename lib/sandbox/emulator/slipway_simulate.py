"""SimulatePrincipalPolicy with the context entries and all the resources of the request.

MiniStack's own implementation ignores the context and evaluates only the first resource, so that every statement with a condition would
result in implicitDeny. This one answers as documented in
https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html: one result per action, which contains the decision
for each resource if there are several.
"""

from xml.sax.saxutils import escape

from ministack.core.iam_evaluator import EvalContext, evaluate
from ministack.core.responses import get_region
from ministack.services import iam

DECISIONS = {"Allow": "allowed", "Deny": "explicitDeny", "ImplicitDeny": "implicitDeny"}


class Requested(str):
    """The first resource of the question, which is all that MiniStack passes on, together with the rest of the question."""

    resources = ()
    context = {}


def members(p, name):
    values, index = [], 1
    while value := iam._p(p, f"{name}.member.{index}"):
        values.append(value)
        index += 1
    return values


def context_of(p):
    context, index = {"aws:tagkeys": None}, 1
    while key := iam._p(p, f"ContextEntries.member.{index}.ContextKeyName"):
        values = members(p, f"ContextEntries.member.{index}.ContextKeyValues")
        many = (iam._p(p, f"ContextEntries.member.{index}.ContextKeyType") or "").endswith("List")
        context[key.lower()] = values if many else (values[0] if values else None)
        index += 1
    return context


def question(p):
    resources = members(p, "ResourceArns") or ["*"]
    requested = Requested(resources[0])
    requested.resources, requested.context = resources, context_of(p)
    return members(p, "ActionNames"), requested


def decision(action, resource, context, principal, account, policies, *limits):
    """`limits`: statements of a permissions boundary, as MiniStack keeps them."""
    if not policies:
        return "implicitDeny"
    found = EvalContext(
        principal_arn=principal,
        principal_type="AssumedRole",
        principal_account=account,
        action=action,
        resource_arn=resource,
        region=get_region(),
        source_ip="127.0.0.1",
        secure_transport=True,
        service_context=context,
    )
    return DECISIONS[evaluate(found, policies, *limits).decision]


def results(actions, requested, principal, account, policies):
    text = ""
    for action in actions:
        each = [(r, decision(action, r, requested.context, principal, account, policies)) for r in requested.resources]
        denied = [found for _, found in each if found != "allowed"]
        whole = "explicitDeny" if "explicitDeny" in denied else (denied[0] if denied else "allowed")
        several = (
            "".join(
                f"<member><EvalResourceName>{escape(r)}</EvalResourceName><EvalResourceDecision>{found}</EvalResourceDecision></member>"
                for r, found in each
            )
            if len(each) > 1
            else ""
        )
        text += (
            f"<member><EvalActionName>{escape(action)}</EvalActionName>"
            f"<EvalResourceName>{escape(each[0][0] if len(each) == 1 else '*')}</EvalResourceName>"
            f"<EvalDecision>{whole}</EvalDecision><MatchedStatements></MatchedStatements>"
            f"<MissingContextValues></MissingContextValues><ResourceSpecificResults>{several}</ResourceSpecificResults></member>"
        )
    return text


def install():
    iam._extract_simulate_params = question
    iam._build_simulate_results_real = results
