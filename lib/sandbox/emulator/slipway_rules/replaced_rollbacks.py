"""A rollback sends a custom resource whose update gave another physical id an update back, and then deletes the new id.

MiniStack only deletes the new one. The order on AWS: https://github.com/aws/aws-cdk/pull/29581 ("ERROR, triggers a rollback; UPDATE custom
resource (new -> old)"). The deleted id is that of the update which is undone:
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-update.html: "If the value returned is different,
CloudFormation recognizes the update as a replacement and sends a delete request to the old resource."
"""

from ministack.core.concurrency import run_reentrant
from ministack.services.cloudformation import provisioners, stacks

from slipway_rules.hooks import wrap


async def roll_back(original, stack_name, stack_id, stack, operation, reason_override=""):
    before = (operation.get("previous_stack") or {}).get("_resources", {})
    made = {
        name: stack["_resources"][name]
        for name in operation.get("replaced_ids", [])
        if name in before and stack["_resources"][name]["ResourceType"].startswith("Custom::")
    }
    # A resource that has kept its id is updated back.
    for name, record in made.items():
        before[name]["PhysicalResourceId"] = record["PhysicalResourceId"]
    others = [name for name in operation.get("replaced_ids", []) if name not in made]
    await original(stack_name, stack_id, stack, {**operation, "replaced_ids": others}, reason_override)
    moved = {name: record for name, record in made.items() if before[name]["PhysicalResourceId"] != record["PhysicalResourceId"]}
    ended, stack["StackStatus"] = stack["StackStatus"], "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    for name, record in moved.items():
        undone = (record["ResourceType"], record["PhysicalResourceId"], record["Properties"], stack_name, name)
        await run_reentrant(provisioners._delete_resource, *undone)
    stack["StackStatus"] = ended


def install() -> None:
    wrap(stacks, "_roll_back_operation", roll_back)
