import type { JobRoleContext } from '../job-role-context';
import type { ExactStatement } from '../statement';

/** Network interfaces that SageMaker creates in the VPC with this role: only in the environment's subnets and security groups. */
export function networkStatements(context: JobRoleContext): ExactStatement[] {
  const { partition, region, account, subnetIds, securityGroupIds, isForeignNetwork } = context;
  if (subnetIds.length === 0) return [];
  const owned = (kind: string, id: string, owner = account) => `arn:${partition}:ec2:${region}:${owner}:${kind}/${id}`;
  // The ARN of a subnet that is shared through RAM contains its owner's account; the id of a subnet is unique.
  const arn = (kind: string, id: string) => owned(kind, id, isForeignNetwork ? '*' : account);
  const subnets = subnetIds.map((id) => arn('subnet', id));
  const interfaces = owned('network-interface', '*');
  return [
    {
      sid: 'SeeNetwork',
      actions: [
        'ec2:DescribeDhcpOptions',
        'ec2:DescribeNetworkInterfaces',
        'ec2:DescribeSecurityGroups',
        'ec2:DescribeSubnets',
        'ec2:DescribeVpcs',
      ],
      resources: ['*'],
      wildcard: 'Describe actions of EC2 have no resource type.',
    },
    {
      sid: 'MakeInterfaces',
      actions: ['ec2:CreateNetworkInterface'],
      resources: [interfaces, ...subnets, ...securityGroupIds.map((id) => arn('security-group', id))],
      wildcard: 'An interface has no id before it is made; subnets and groups are named.',
    },
    {
      sid: 'HandOverInterfaces',
      actions: [
        'ec2:CreateNetworkInterfacePermission',
        'ec2:DeleteNetworkInterface',
        'ec2:DeleteNetworkInterfacePermission',
      ],
      resources: [interfaces],
      conditions: { ArnLike: { 'ec2:Subnet': subnets } },
      wildcard: 'Interfaces are made per job; the condition holds them to the subnets of the environment.',
    },
  ];
}
