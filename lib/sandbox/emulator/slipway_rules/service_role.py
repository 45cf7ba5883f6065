"""CloudFormation uses the role that an operation on a stack names, and keeps using it for the stack.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-iam-servicerole.html: "CloudFormation uses this role for all
operations that are performed on that stack". What a handler needs is in `handlers.json`: the permissions that CloudFormation publishes
for each type, and the formats of the ARNs on which the Service Authorization Reference authorizes each one
(scripts/handler-permissions.py). Each must be allowed on the resource itself, on those that its properties name by ARN, and on those to
which it belongs. A create is judged when its ARN is known, and undone if it is refused.

A role that the embedded IAM does not have is not judged, although AWS refuses the operation, nor is one with a policy of AWS, such as the
AdministratorAccess of a bootstrap stack (an empty name in MiniStack), whose documents MiniStack lacks.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ministack.core.iam_evaluator import _gather_role_policies, _permissions_boundary
from ministack.core.responses import get_account_id, get_region
from ministack.services import iam
from ministack.services.cloudformation import _stacks, handlers, provisioners, stacks
from ministack.services.cloudformation.helpers import _p

from slipway_rules.hooks import failed, wrap
from slipway_simulate import decision

TABLE = json.loads((Path(__file__).parent / "handlers.json").read_text(encoding="utf-8"))
#: The actions of one operation, which the others do not need.
ACTIONS = {
    "create": re.compile(r"\w+:(Create|Allocate)\w*"),
    "update": re.compile(r"\w+:(Update|Modify)\w*"),
    "delete": re.compile(r"\w+:(Delete|Release|ScheduleKeyDeletion)\w*"),
}
#: Properties that name the resources to which one belongs.
OWNERS = ("Bucket", "FunctionName", "Queues", "Roles", "Topics")
#: Properties whose ARNs are what a policy or a program is about, not what the handler uses.
CONTENTS = ("AssumeRolePolicyDocument", "Environment", "KeyPolicy", "Policies", "PolicyDocument")
#: Prefix of the actions of a service, where it is not the service's name in its types.
PREFIXES = {"StepFunctions": "states"}
ROLE = "_slipway_role"


class Resource:
    """A resource of a stack, and the ARNs on which its handler may act."""

    def __init__(self, resource_type: str, physical_id: str, props: dict, attributes: dict) -> None:
        self.type = resource_type
        self.props = props
        self.prefix = PREFIXES.get(service := resource_type.split("::")[1], service.lower())
        owners = [str(name) for key in OWNERS for name in listed(props.get(key))]
        named = [iam._roles[name]["Arn"] if name in iam._roles else name for name in owners or [physical_id]]
        used = {key: value for key, value in props.items() if key not in CONTENTS}
        self.arns = {name for name in arns_in([physical_id, named, attributes, used]) if "${" not in name}
        self.names = [re.split("[/:]", name)[-1] if "://" in name else name.lstrip("/") for name in named if not name.startswith("arn:")]

    def questions(self, operation: str) -> Iterator[tuple[str, str]]:
        """Each action that the handler needs for an operation, with each resource on which it is authorized."""
        if self.type.startswith("Custom::"):
            yield "lambda:InvokeFunction", str(self.props.get("ServiceToken"))
        others = [pattern for other, pattern in ACTIONS.items() if other != operation]
        for action in TABLE["types"].get(self.type, []):
            if any(pattern.fullmatch(action) for pattern in others):
                continue
            formats = TABLE["arns"][action]
            on = [arn for one in formats for arn in self.known(one)]
            if not on and action.startswith(f"{self.prefix}:"):
                on = self.named(min(formats, key=len, default=""))
            everything = not formats or (not on and action.startswith(("ec2:", "route53:")))
            yield from ((action, arn) for arn in (["*"] if everything else on))

    def known(self, form: str) -> list[str]:
        """The ARNs of a format that the resource has or names."""
        pattern = re.compile(re.sub(r"\\\$\\\{\w+\\\}", ".+", re.escape(form)))
        return [arn for arn in self.arns if pattern.fullmatch(arn)]

    def named(self, form: str) -> list[str]:
        """The ARNs of a format with the names of the resource in it."""
        place = {"Partition": "aws", "Region": get_region(), "Account": get_account_id()}
        filled = re.sub(r"\$\{(\w+)\}", lambda found: place.get(found[1], found[0]), form)
        return [re.sub(r"\$\{\w+\}", lambda _, name=name: name, filled) for name in self.names] if filled.count("${") == 1 else []

    def context(self, arn: str) -> dict:
        """Condition keys of a request about the resource: its environment, and the boundary of the role that it is or changes."""
        tags = self.props.get("Tags") or []
        pairs = tags.items() if isinstance(tags, dict) else ((tag.get("Key"), tag.get("Value")) for tag in tags)
        role = iam._roles.get(arn.rsplit("/", 1)[-1]) or {}
        boundary = self.props.get("PermissionsBoundary") or role.get("PermissionsBoundary")
        return {
            "aws:tagkeys": None,
            **{f"aws:resourcetag/{key}".lower(): value for key, value in pairs},
            **({"iam:permissionsboundary": boundary} if boundary else {}),
        }


def listed(value) -> list:
    return value if isinstance(value, list) else [value] if value else []


def arns_in(value) -> list[str]:
    return re.findall(r'"(arn:[^"\s]+)"', json.dumps(value, default=str))


def require_allowed(operation: str, stack_name: str, resource: Resource) -> None:
    """Raises the error of the handler for the first action that the stack's role does not allow."""
    role = (_stacks.get(stack_name) or {}).get(ROLE, "")
    name, account = role.rsplit("/", 1)[-1], get_account_id()
    attached = (iam._roles.get(name) or {}).get("AttachedPolicies", [""])
    if any(not policy or ":aws:policy/" in policy for policy in attached):
        return
    caller = f"arn:aws:sts::{account}:assumed-role/{name}/AWSCloudFormation"
    policies, limits = _gather_role_policies(name, account), _permissions_boundary(iam._roles, name, account)
    for action, arn in resource.questions(operation):
        if decision(action, arn, resource.context(arn), caller, account, policies, *limits) != "allowed":
            reason = f"User: {caller} is not authorized to perform: {action} on resource: {arn}"
            raise failed(resource.type, reason, "AccessDenied")


def note_role(original, params):
    """An operation that names a role sets the role of its stack."""
    answer = original(params)
    name, role = _p(params, "StackName"), _p(params, "RoleARN")
    stack = _stacks.get(name.split("/")[1] if name.startswith("arn:") else name)
    if role and stack is not None:
        stack[ROLE] = role
    return answer


def keep_boundary(resource_type: str, name: str, props: dict) -> None:
    """A role has the boundary of its template, which MiniStack drops."""
    if resource_type == "AWS::IAM::Role" and (boundary := props.get("PermissionsBoundary")):
        iam._roles[name]["PermissionsBoundary"] = boundary


def provision(original, resource_type, logical_id, props, stack_name):
    if resource_type.startswith("Custom::"):
        # Its handler only invokes a function, whose ARN the template has.
        require_allowed("create", stack_name, Resource(resource_type, "", props, {}))
        return original(resource_type, logical_id, props, stack_name)
    physical_id, attributes = original(resource_type, logical_id, props, stack_name)
    keep_boundary(resource_type, physical_id, props)
    try:
        require_allowed("create", stack_name, Resource(resource_type, physical_id, props, attributes))
    except ValueError:
        provisioners._delete_resource(resource_type, physical_id, props, stack_name, logical_id)
        raise
    return physical_id, attributes


def update(original, resource_type, physical_id, old_props, new_props, stack_name, logical_id=None, old_attrs=None):
    if old_props != new_props:
        require_allowed("update", stack_name, Resource(resource_type, physical_id, new_props, old_attrs or {}))
    updated = original(resource_type, physical_id, old_props, new_props, stack_name, logical_id, old_attrs)
    keep_boundary(resource_type, updated[0], new_props)
    return updated


def delete(original, resource_type, physical_id, props, stack_name=None, logical_id=None):
    record = (_stacks.get(stack_name) or {}).get("_resources", {}).get(logical_id) or {}
    require_allowed("delete", stack_name, Resource(resource_type, physical_id, props, record.get("Attributes") or {}))
    return original(resource_type, physical_id, props, stack_name, logical_id)


def install() -> None:
    for name in ("_create_stack", "_update_stack", "_delete_stack", "_create_change_set"):
        wrap(handlers, name, note_role)
    wrap(stacks, "_provision_resource", provision)
    wrap(stacks, "_update_resource", update)
    wrap(stacks, "_delete_resource", delete)
