import { describe, expect, test } from 'vitest';
import { environmentMessages as said } from '../../../support/environment-messages';

const OIDC = 'arn:aws:iam::111122223333:oidc-provider/gitlab.com';

describe('what a company asks for', () => {
  test.each([
    [{ iam: { permissionsBoundary: 'b', rolePath: '/ml/', rolePrefix: 'acme-' }, tags: { a: 1 } }],
    [{ iam: { permissionsBoundary: 'arn:aws:iam::aws:policy/PowerUserAccess' } }],
    [{ iam: { oidcProvider: OIDC, oidcSubjects: ['project_path:acme/training:*'] } }],
    [{ network: { cidr: '10.80.0.0/21', reserved: ['10.0.0.0/10'] }, logging: { kms: false, retentionDays: 1 } }],
    [{ secrets: { allowedPrefix: 'slipway/' }, network: { endpoints: ['ssm'] } }],
    [{ secrets: { allowedPrefix: 'slipway/' }, network: { mode: 'vpc-nat' } }],
  ])('%j is accepted', (more) => expect(said(more)).toEqual([]));

  test('a free block is named in a size that a VPC may have, the same one beside each neighbour', () => {
    const reserved = ['10.64.0.0/16', '10.64.0.0/14'];
    expect(said({ network: { cidr: '10.64.0.0/32', reserved } })).toEqual([
      'network.cidr: must be a block from /16 to /21, got 10.64.0.0/32; write 10.64.0.0/21',
      ...reserved.map(
        (block) =>
          `network.cidr: must not overlap ${block}, which is reserved, got 10.64.0.0/32; use a free block such as 10.0.0.0/21`,
      ),
    ]);
    expect(said({ network: { cidr: '10.80.1.7/25' } })).toEqual([
      'network.cidr: must be a block from /16 to /21, got 10.80.1.7/25; write 10.80.0.0/21',
      'network.cidr: must start with the first address of its block, got 10.80.1.7/25; write 10.80.0.0/21',
    ]);
    expect(said({ network: { cidr: '10.0.0.0/8', reserved: ['10.0.0.0/15'] } })).toContain(
      'network.cidr: must not overlap 10.0.0.0/15, which is reserved, got 10.0.0.0/8; use a free block such as 10.2.0.0/16',
    );
    expect(said({ network: { reserved: ['10.0.0.0/8'] } })).toEqual([
      'network.cidr: must not overlap 10.0.0.0/8, which is reserved, got 10.64.0.0/16; use a block outside of 10.0.0.0/8',
    ]);
  });

  test.each([
    [
      { iam: { permissionsBoundary: 'arn:aws:iam::444455556666:policy/b' } },
      'iam.permissionsBoundary: must be in account 111122223333, got arn:aws:iam::444455556666:policy/b; write only the name of the policy',
    ],
    [
      { iam: { permissionsBoundary: 'arn:aws-cn:iam::111122223333:policy/b' } },
      'iam.permissionsBoundary: must be in partition aws of us-west-2, got arn:aws-cn:iam::111122223333:policy/b; write arn:aws:iam::...',
    ],
    [{ iam: { rolePath: 'ml' } }, 'iam.rolePath: must be a path such as /ml/, that begins and ends with /, got ml'],
    [{ iam: { rolePrefix: 'a prefix' } }, 'iam.rolePrefix: must be 1-24 letters, digits and +=,.@_-, got a prefix'],
    [
      { iam: { oidcProvider: OIDC } },
      'iam.oidcSubjects: must be set with oidcProvider; write oidcSubjects: ["repo:<owner>/<repository>:ref:refs/heads/main"]',
    ],
    [
      { iam: { oidcProvider: OIDC, oidcSubjects: ['*'] } },
      'iam.oidcSubjects[0]: must not begin with a wildcard, got *',
    ],
    [
      { tags: { 'slipway:team': 'x' } },
      'tags.slipway:team: must not start with aws: or slipway:, got slipway:team; rename it',
    ],
    [
      { tags: { Team: 'x', team: 'y' } },
      'tags.team: must differ from Team in more than case, got team; keep one of them',
    ],
    [
      { tags: Object.fromEntries(Array.from({ length: 36 }, (_, i) => [`k${i}`, 'v'])) },
      'tags: must be at most 35, got 36; remove some: a resource can have 50, and runs add their own',
    ],
    [
      { network: { cidr: '10.80.0.0/24' } },
      'network.cidr: must be a block from /16 to /21, got 10.80.0.0/24; write 10.80.0.0/21',
    ],
    [
      { network: { cidr: '10.80.1.0/16' } },
      'network.cidr: must start with the first address of its block, got 10.80.1.0/16; write 10.80.0.0/16',
    ],
    [
      { network: { cidr: '52.0.0.0/16' } },
      'network.cidr: must be in a private range: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10, got 52.0.0.0/16; use 10.64.0.0/16, or another block in these ranges',
    ],
    [
      { network: { cidr: '172.17.0.0/16' } },
      'network.cidr: must not overlap 172.17.0.0/16, which SageMaker uses itself, got 172.17.0.0/16; use a free block such as 10.0.0.0/16',
    ],
    [
      { network: { reserved: ['10.0.0.0/9'] } },
      'network.cidr: must not overlap 10.0.0.0/9, which is reserved, got 10.64.0.0/16; use a free block such as 10.128.0.0/16',
    ],
    [
      { network: { mode: 'none', cidr: '10.80.0.0/16' } },
      'network.cidr: must be used with a network that the stack creates, unlike mode none, got 10.80.0.0/16; use mode: vpc-locked or vpc-nat, or remove it',
    ],
    [
      { network: { cidr: '10.300.0.0/16' } },
      'network.cidr: must be a block of IPv4 addresses such as 10.64.0.0/16, got 10.300.0.0/16',
    ],
    [
      { secrets: { allowedPrefix: 'slipway/' } },
      'network.endpoints: must contain secretsmanager or ssm, with secrets.allowedPrefix and mode vpc-locked, got []; write endpoints: [secretsmanager]',
    ],
    [
      { secrets: { allowedPrefix: '*' } },
      'secrets.allowedPrefix: must be 1-256 letters, digits and /_+=.@-, or {team}, got *',
    ],
  ])('fails: %j', (more, message) => expect(said(more).join('\n')).toContain(message));

  test('fails: CloudWatch Logs takes some numbers of days only', () => {
    expect(said({ logging: { retentionDays: 100 } }).join()).toMatch(/logging\.retentionDays: must be .*got 100/);
  });
});
