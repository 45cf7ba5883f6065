import type { IpPermission, SecurityGroup } from '@aws-sdk/client-ec2';
import type { ExistingNetwork } from '../../../core/config/environment/network';
import type { Issue } from '../../../core/config/issue';
import { networkIssue } from './network-issue';

/** The groups that allow every protocol from and to their own members, which EFA needs. */
export const selfReachingGroups = (groups: readonly SecurityGroup[]): SecurityGroup[] =>
  groups.filter(({ GroupId, IpPermissions, IpPermissionsEgress }) =>
    [IpPermissions, IpPermissionsEgress].every((rules = []) =>
      rules.some((r) => r.IpProtocol === '-1' && r.UserIdGroupPairs?.some((pair) => pair.GroupId === GroupId)),
    ),
  );

/**
 * The hosts of a job communicate through their security group; EFA requires rules that reference the group, not address ranges, and
 * SageMaker's check of EFA on HyperPod requires them of every group (https://github.com/awslabs/awsome-distributed-ai/pull/259, 2026-11-30).
 */
export function groupIssues({ usesEfa }: ExistingNetwork, groups: readonly SecurityGroup[]): Issue[] {
  const reaching = selfReachingGroups(groups);
  const others = groups.filter((group) => !reaching.includes(group)).map(({ GroupId = '' }) => GroupId);
  const [first] = others;
  if (first === undefined || (reaching.length > 0 && !usesEfa)) return [];
  const which = reaching.length > 0 ? 'should only include groups that allow' : 'must include a group that allows';
  return [
    networkIssue(usesEfa && reaching.length === 0 ? 'error' : 'warning', 'securityGroupIds', {
      must: `${which} all traffic from and to ${reaching.length > 0 ? 'themselves' : 'itself'}, which multi-instance jobs and EFA require`,
      got: others.join(', '),
      fix: `add both rules: aws ec2 authorize-security-group-ingress --group-id ${first} --protocol=-1 --source-group ${first} and aws ec2 authorize-security-group-egress --group-id ${first} --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{GroupId=${first}}]`,
    }),
  ];
}

const PRIVATE = /^(10|172\.(1[6-9]|2\d|3[01])|192\.168)\./;

/** Whether a rule allows HTTPS to the public addresses of S3, which it has behind a gateway endpoint too. */
const opensS3 = ({ IpProtocol, FromPort = 0, ToPort = 65535, IpRanges = [], PrefixListIds = [] }: IpPermission) =>
  (IpProtocol === '-1' || (IpProtocol === 'tcp' && FromPort <= 443 && ToPort >= 443)) &&
  (PrefixListIds.length > 0 || IpRanges.some(({ CidrIp = '' }) => !PRIVATE.test(CidrIp)));

/** Issues of groups that let jobs send nothing to S3, which they do without an interface endpoint at its public addresses. */
export function outboundIssues(groups: readonly SecurityGroup[]): Issue[] {
  if (groups.some(({ IpPermissionsEgress = [] }) => IpPermissionsEgress.some(opensS3))) return [];
  const ids = groups.map(({ GroupId = '' }) => GroupId);
  return [
    networkIssue('error', 'securityGroupIds', {
      must: 'must include a group that allows HTTPS to S3',
      got: ids.join(', '),
      fix: `add the rule: aws ec2 authorize-security-group-egress --group-id ${ids[0]} --protocol tcp --port 443 --cidr 0.0.0.0/0, or one for the prefix list of S3`,
    }),
  ];
}
