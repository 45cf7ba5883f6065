import { readFileSync } from 'node:fs';

/** Handlers of CloudFormation name actions for options that no template of ours has. */
const UNUSED: readonly RegExp[] = [
  // Groups and users, mount targets and code signing, weighted aliases, imports and streams, exports of flow logs, other gateways.
  /^iam:\w+(Group|User)Policy$/,
  /^(autoscaling|billing|codedeploy|elasticfilesystem|firehose|kinesis|s3files|s3tables|vpc-lattice|vpce):/,
  /^lambda:(GetLayerVersion|PassCapacityProvider|\w+CodeSigningConfig)$/,
  /^logs:(\w*LogDelivery|\w+ResourcePolicy|\w+ResourcePolicies|\w+Index\w+)$/,
  /^kms:(ListAliases|ListKeys)$/,
  /^s3:(ListAllMyBuckets|\w+MetadataTable\w*)$/,
  /^dynamodb:(ImportTable|DescribeImport|\w*Replica\w*)$/,
  /^ec2:(AcceptAddressTransfer|\w*VpnGateways?|AssociateSubnetCidrBlock|\w+EncryptionControls?)$/,
  /^logs:(CreateLogStream|DescribeLogStreams|PutLogEvents)$/,
  /^iam:(ListRoles|ListPolicies)$/,
  // Nobody may take the boundary off a role.
  /^iam:DeleteRolePermissionsBoundary$/,
];
const { types } = JSON.parse(readFileSync('test/fixtures/templates/handler-permissions.json', 'utf8')) as {
  types: Record<string, Record<string, string[]>>;
};

/** Permissions of CloudFormation's handlers by resource type, with the formats of the ARNs on which each action is authorized. */
export const HANDLERS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = Object.fromEntries(
  Object.entries(types).map(([type, actions]) => [
    type,
    Object.fromEntries(Object.entries(actions).filter(([action]) => !UNUSED.some((one) => one.test(action)))),
  ]),
);
