"""Records the decisions of identity-based policies on the calls of this sandbox: one JSON line for each different decision.

With `auth`, MiniStack's evaluator checks every call to MiniStack's services, and launch.py calls it for ours. Decisions of resource
policies, which use the same evaluator, are not recorded, nor are those of SimulatePrincipalPolicy, which are not calls.
"""

import json
import threading
from contextvars import ContextVar
from pathlib import Path

from ministack.core import iam_evaluator

_of_a_resource: ContextVar[bool] = ContextVar("of a resource", default=False)


def install(file: str) -> None:
    """Appends every distinct decision to a file once."""
    evaluate, evaluate_resource_policy = iam_evaluator.evaluate, iam_evaluator.evaluate_resource_policy
    written: set[str] = set()
    lock = threading.Lock()

    def recorded(requested, policies, *limits):
        found = evaluate(requested, policies, *limits)
        if not _of_a_resource.get():
            line = line_of(requested, found)
            with lock:
                if line not in written:
                    written.add(line)
                    with Path(file).open("a", encoding="utf-8") as opened:
                        opened.write(line)
        return found

    def unrecorded(*arguments, **options):
        token = _of_a_resource.set(True)
        try:
            return evaluate_resource_policy(*arguments, **options)
        finally:
            _of_a_resource.reset(token)

    iam_evaluator.evaluate, iam_evaluator.evaluate_resource_policy = recorded, unrecorded


def line_of(requested, found) -> str:
    fields = {
        "principal": requested.principal_arn,
        "action": requested.action,
        "resource": requested.resource_arn,
        "decision": found.decision,
        "statement": found.matched_sid,
    }
    return json.dumps(fields) + "\n"
