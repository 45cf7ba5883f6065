import type { SecurityGroup } from '@aws-sdk/client-ec2';

/** The groups that allow every protocol from and to their own members, which EFA needs. */
export const selfReachingGroups = (groups: readonly SecurityGroup[]): SecurityGroup[] =>
  groups.filter(({ GroupId, IpPermissions, IpPermissionsEgress }) =>
    [IpPermissions, IpPermissionsEgress].every((rules = []) =>
      rules.some((r) => r.IpProtocol === '-1' && r.UserIdGroupPairs?.some((pair) => pair.GroupId === GroupId)),
    ),
  );
