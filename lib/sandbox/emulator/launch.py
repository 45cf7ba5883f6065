"""The program that starts MiniStack, in place of its `ministack` script.

It adds one private route, `POST /_slipway/<call>`, for questions of our services that no public API answers: who a caller is, how IAM
decides on an action with its condition keys, whether a role trusts a service; and for events whose source begins with `aws.`. It adds
logStreamNamePrefix to FilterLogEvents, and installs the AWS rules that MiniStack lacks (slipway_rules). The token that protects the
route is removed from the environment before any Lambda function can inherit it. The program uses private names of MiniStack, so its
version is pinned (venv.ts).

It also watches the process that started it: when that process is killed, it ends all jobs and Lambda workers.
"""

import glob
import hmac
import json
import os
import re
import signal
import threading
import time

TOKEN = os.environ.pop("SLIPWAY_HOOK_TOKEN")
MARKER = os.environ.pop("SLIPWAY_JOB_MARKER").encode()
RULES_OFF = os.environ.pop("SLIPWAY_RULES_OFF", "")
DECISIONS = os.environ.pop("SLIPWAY_DECISIONS", "")
OWNER = os.getppid()

import ministack.app as app_module  # noqa: E402  (the token leaves the environment first)
from ministack.core import iam_evaluator, responses, sigv4  # noqa: E402
from ministack.services import cloudwatch_logs, eventbridge, iam  # noqa: E402

import slipway_record  # noqa: E402
import slipway_rules  # noqa: E402
import slipway_sessions  # noqa: E402
import slipway_simulate  # noqa: E402
from slipway_faults import AwsFaults, read_body  # noqa: E402
from slipway_rules import endpoint_policies  # noqa: E402


def caller_of(request):
    """(account, ResolvedCredential) of a request, or (None, {code, message})."""
    key = request["accessKeyId"]
    try:
        account = responses._account_from_sts_session(key) or iam_evaluator.find_iam_access_key_account(key)
    except iam_evaluator.AmbiguousAccessKeyError:
        account = None
    if account is None:
        account = key if len(key) == 12 and key.isdigit() else os.environ["MINISTACK_ACCOUNT_ID"]
    found = iam_evaluator.resolve_credential(key, account, request.get("sessionToken") or "")
    if isinstance(found, iam_evaluator.CredentialResolutionError):
        return account, {"code": found.code, "message": found.message}
    return account, found


def signature_failure(request, credential):
    headers = request["headers"]
    signature = sigv4.parse_header_signature(headers)
    if isinstance(signature, tuple):
        return {"code": signature[0], "message": signature[1]}
    failed = sigv4.request_time_failure(signature) or sigv4.header_signature_failure(
        signature, credential.secret_access_key, request["method"], request["path"], {}, headers, b""
    )
    return {"code": failed[0], "message": failed[1]} if failed else None


def identify(request):
    """Account and principal of a caller; with enforcement, its signature must be valid too."""
    account, credential = caller_of(request)
    refused = credential if isinstance(credential, dict) else None
    if refused is None and request["enforce"]:
        refused = signature_failure(request, credential)
    if refused is not None:
        return {"account": account, "arn": None, "refused": refused if request["enforce"] else None}
    return {"account": account, "arn": credential.principal_arn, "refused": None}


def authorize(request):
    """IAM's decision on each {action, resource, context} for the caller: Allow, Deny or ImplicitDeny."""
    account, credential = caller_of(request)
    principal = None if isinstance(credential, dict) else iam_evaluator.resolve_principal(request["accessKeyId"], account, credential)
    if principal is None or isinstance(principal, iam_evaluator.AuthError):
        return {"decisions": ["ImplicitDeny" for _ in request["questions"]]}
    if principal.policies is None:
        return {"decisions": ["Allow" for _ in request["questions"]]}
    whose = {"principal_arn": principal.arn, "principal_type": principal.type, "principal_account": principal.account}
    decisions = []
    for question in request["questions"]:
        evaluated = iam_evaluator.EvalContext(
            **whose,
            action=question["action"],
            resource_arn=question["resource"],
            region=request["region"],
            source_ip="127.0.0.1",
            secure_transport=True,
            service_context={"aws:tagkeys": None, **{key.lower(): value for key, value in question.get("context", {}).items()}},
            principal_keys=principal.keys,
        )
        decisions.append(iam_evaluator.evaluate(evaluated, principal.policies, *principal.limits).decision)
    return {"decisions": decisions}


def trusts(request):
    """Whether a role exists and its trust policy lets a service principal assume it, with its conditions evaluated on the given context."""
    _, _, _, _, account, resource = request["roleArn"].split(":", 5)
    role = iam._roles.get_scoped(account, None, resource.rsplit("/", 1)[-1])
    if role is None or role.get("Arn", request["roleArn"]) != request["roleArn"]:
        return {"trusted": False}
    document = role.get("AssumeRolePolicyDocument", "{}")
    statements = (json.loads(document) if isinstance(document, str) else document).get("Statement", [])
    evaluated = iam_evaluator.EvalContext(
        principal_arn=request["service"],
        principal_type="Service",
        principal_account=account,
        action="sts:AssumeRole",
        resource_arn=request["roleArn"],
        region=request["region"],
        source_ip="127.0.0.1",
        secure_transport=True,
        service_context={key.lower(): value for key, value in request["context"].items()},
    )
    decisions = {
        statement.get("Effect")
        for statement in (statements if isinstance(statements, list) else [statements])
        if names_service(statement, request["service"]) and iam_evaluator._conditions_met(statement.get("Condition", {}), evaluated)
    }
    return {"trusted": "Allow" in decisions and "Deny" not in decisions}


def names_service(statement, service):
    def listed(value):
        return [value] if isinstance(value, str) else list(value or [])

    principal = statement.get("Principal", {})
    named = principal == "*" or (isinstance(principal, dict) and service in listed(principal.get("Service")))
    return named and iam_evaluator._action_matches("sts:AssumeRole", listed(statement.get("Action")), listed(statement.get("NotAction")))


def assume(request):
    return slipway_sessions.assume(request["roleArn"], request["sessionName"], request["seconds"])


def put_event(request):
    """Puts one event; unlike in the public call, its source may begin with aws."""
    responses.set_request_account_id(request["account"])
    responses.set_request_region(request["region"])
    _, _, body = eventbridge._put_events({"Entries": [request["entry"]]}, allow_aws_source=True)
    return json.loads(body)


def filter_by_stream_prefix(data, whole=cloudwatch_logs._filter_log_events):
    """Adds logStreamNamePrefix, which MiniStack ignores, to FilterLogEvents."""
    prefix = data.get("logStreamNamePrefix")
    group = cloudwatch_logs._resolve_log_group_name(data)
    if not prefix or group not in cloudwatch_logs._log_groups:
        return whole(data)
    names = [name for name in cloudwatch_logs._log_groups[group]["streams"] if name.startswith(prefix)]
    return whole({**data, "logStreamNames": names or [prefix]})


cloudwatch_logs._filter_log_events = filter_by_stream_prefix
slipway_simulate.install()
slipway_rules.install(RULES_OFF)
if DECISIONS:
    slipway_record.install(DECISIONS)
faults = AwsFaults()
CALLS = {
    "identify": identify,
    "authorize": authorize,
    "trusts": trusts,
    "assume": assume,
    "put-event": put_event,
    "add-fault": faults.add,
    "list-faults": faults.list,
    "remove-faults": faults.remove,
}
inner = app_module.app


async def answer(scope, receive, send):
    token = dict(scope["headers"]).get(b"x-slipway-token", b"").decode("latin-1")
    call = CALLS.get(scope["path"].rsplit("/", 1)[-1])
    if call is None or not hmac.compare_digest(token, TOKEN):
        status, reply = 404, {"message": "not found"}
    else:
        try:
            status, reply = 200, call(json.loads(await read_body(receive)))
        except Exception as error:  # a private name changed or a policy is malformed: say which
            status, reply = 500, {"message": f"{type(error).__name__}: {error}"}
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(reply).encode()})


OWN_HOST = re.compile(r"(127\.0\.0\.1|([\w-]+\.)*localhost)(:\d+)?")


def is_foreign(scope):
    """Whether a browser sends it for a page that is not ours; `refuseForeign` in wire/http-server.ts is the same for our services."""
    headers = {name: value.decode("latin-1") for name, value in scope.get("headers", [])}
    host = headers.get(b"host", "")
    is_own = OWN_HOST.fullmatch(host) and headers.get(b"origin", host).split("://")[-1] == host
    return not is_own or headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin")


async def app(scope, receive, send):
    if scope["type"] != "lifespan" and is_foreign(scope):
        kind = "websocket.http" if scope["type"] == "websocket" else "http"
        await send({"type": f"{kind}.response.start", "status": 403, "headers": []})
        await send({"type": f"{kind}.response.body", "body": b"the sandbox answers programs on this machine, and no web pages"})
    elif scope["type"] != "http" or scope["path"].startswith("/_ministack/"):
        await inner(scope, receive, send)
    elif scope["path"].startswith("/_slipway/"):
        await answer(scope, receive, send)
    else:
        endpoint_policies.note_endpoint(scope)
        await faults.answer(scope, receive, send, inner)


def end_with_owner():
    """When the process that started us has died, ends its jobs and then this process group."""
    while os.getppid() == OWNER:
        time.sleep(0.5)
    for environment in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(environment, "rb") as file:
                if MARKER in file.read().split(b"\0"):
                    os.kill(int(environment.split("/")[2]), signal.SIGKILL)
        except OSError:
            continue  # it ended by itself, or is not ours
    os.killpg(0, signal.SIGKILL)


threading.Thread(target=end_with_owner, daemon=True).start()
app_module.app = app
app_module.main()
