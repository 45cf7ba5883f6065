import {
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { check, checkIssues } from '../../../lib/cli/environment/checks/account-checks';
import { environmentChecks } from '../../../lib/cli/environment/checks/environment-checks';
import { missingData } from '../../../lib/cli/environment/preflight';
import { resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment, loadRun } from '../../../lib/core/config/load';
import { mockClient } from '../../support/mocked-clients';
import { BASE, DESCRIPTOR } from '../../support/runs';

const s3 = mockClient(S3Client);
const ec2 = mockClient(EC2Client);

const failing = (name: string, httpStatusCode: number) =>
  Object.assign(new Error(name), { name, $metadata: { httpStatusCode } });
beforeEach(() => {
  for (const mock of [s3, ec2]) mock.reset();
});

function run(changes: object) {
  const { value, issues } = loadRun(JSON.stringify({ ...BASE, ...changes }));
  if (!value) throw new Error(JSON.stringify(issues));
  return value;
}

describe('data of a run', () => {
  const data = [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }];
  const messages = async (changes: object = {}) =>
    (await missingData(run({ data, ...changes }), DESCRIPTOR)).map((i) => `${i.level} ${i.message}`);

  test('that is there is listed once, below its prefix', async () => {
    s3.on(ListObjectsV2Command).resolves({ KeyCount: 1 });
    expect(await messages()).toEqual([]);
    expect(s3.commandCalls(ListObjectsV2Command).map((c) => c.args[0].input)).toEqual([
      { Bucket: DESCRIPTOR.dataBucket, Prefix: 'tokens/', Delimiter: '/', MaxKeys: 1 },
    ]);
  });

  test('fails: an empty prefix', async () => {
    s3.on(ListObjectsV2Command).resolves({ KeyCount: 0 });
    const place = `s3://${DESCRIPTOR.dataBucket}/tokens/`;
    expect(await messages()).toEqual([
      `error data[0].s3: must contain at least one object, got none at ${place}; upload the data (aws s3 sync FOLDER ${place}), or correct the prefix`,
    ]);
  });

  // aws/sagemaker-xgboost-container#399
  test.each([
    [2, 1, 1],
    [2, 2, 0],
    [16, 15, 1],
    [1, 1, 0],
  ])('divided among %i instances needs an object for each, of %i', async (instanceCount, found, warnings) => {
    s3.on(ListObjectsV2Command).resolves({ KeyCount: found });
    const divided = data.map((channel) => ({ ...channel, s3DataDistribution: 'ShardedByS3Key' }));
    const compute = { ...BASE.compute, instanceCount };
    const said = await messages({ data: divided, compute });
    expect(said).toHaveLength(warnings);
    for (const message of said)
      expect(message).toContain(
        `warning data[0].s3: must contain an object for each of ${instanceCount} instances (s3DataDistribution: ShardedByS3Key), got ${found} at `,
      );
    expect(s3.commandCalls(ListObjectsV2Command)[0]?.args[0].input).toMatchObject({ MaxKeys: instanceCount });
    expect((await messages({ compute })).length).toBe(0);
  });

  test('divided among more instances than a listing has keys, it is not refused for the length of the listing', async () => {
    s3.on(ListObjectsV2Command).resolves({ KeyCount: 1000 });
    const divided = data.map((channel) => ({ ...channel, s3DataDistribution: 'ShardedByS3Key' }));
    expect(await messages({ data: divided, compute: { ...BASE.compute, instanceCount: 2500 } })).toEqual([]);
    expect(s3.commandCalls(ListObjectsV2Command)[0]?.args[0].input).toMatchObject({ MaxKeys: 1000 });
  });

  test('fails: a bucket that does not exist', async () => {
    s3.on(ListObjectsV2Command).rejects(failing('NoSuchBucket', 404));
    expect(await messages()).toEqual([
      `error data[0].s3: must be in a bucket that exists, got ${DESCRIPTOR.dataBucket}; correct the name, or create the bucket`,
    ]);
  });

  test('that an earlier run will write may be absent', async () => {
    s3.on(ListObjectsV2Command).resolves({ KeyCount: 0 });
    expect((await messages({ after: ['prepare-261101090000'] }))[0]).toMatch(/^warning data\[0\]\.s3: /);
  });

  test('that the caller may not list is a warning which names the permission', async () => {
    s3.on(ListObjectsV2Command).rejects(failing('AccessDenied', 403));
    expect((await messages())[0]).toMatch(/^warning .*no permission for s3:ListBucket on /);
  });
});

test('a missing permission of the caller is named, also where the service gives no reason', async () => {
  const found = await check('checkpoint bucket', 's3:ListBucket on ckpt', () =>
    Promise.reject(failing('UnknownError', 403)),
  );
  expect(found).toMatchObject({ verdict: 'unknown', missingPermission: 's3:ListBucket on ckpt' });
  expect(checkIssues([found]).map((i) => `${i.level} ${i.message}`)).toEqual([
    'warning environment: must allow you to read the checkpoint bucket, got no permission for s3:ListBucket on ckpt; the run itself does not need it; ask the platform team to grant it, or to run preflight for you',
  ]);
});

describe('what an environment file refers to', () => {
  const FILE = (extra: string) => `name: lab\nregions: { us-west-2: {} }\n${extra}`;
  async function environment(text: string) {
    const { value, issues } = loadEnvironment(text);
    if (!value) throw new Error(JSON.stringify(issues));
    const [first] = resolveEnvironments(value);
    if (!first) throw new Error('no region');
    const found = await environmentChecks(first, 'environment.yaml');
    return { checks: found.map((one) => one.check), issues: found.flatMap((one) => one.issues) };
  }
  const EXISTING =
    'network: { mode: existing, existing: { vpcId: vpc-0a1b2c3d, subnetIds: [subnet-0a1b2c3d], securityGroupIds: [sg-0a1b2c3d] } }';

  test('fails: a VPC that does not exist', async () => {
    ec2.on(DescribeVpcsCommand).rejects(failing('InvalidVpcID.NotFound', 400));
    ec2.on(DescribeSubnetsCommand).resolves({ Subnets: [{ SubnetId: 'subnet-0a1b2c3d', VpcId: 'vpc-0a1b2c3d' }] });
    ec2
      .on(DescribeSecurityGroupsCommand)
      .resolves({ SecurityGroups: [{ GroupId: 'sg-0a1b2c3d', VpcId: 'vpc-0a1b2c3d' }] });
    const { checks, issues } = await environment(FILE(`account: "111122223333"\n${EXISTING}`));
    expect(checks).toEqual([{ name: 'existing network', verdict: 'failed', detail: 'vpc-0a1b2c3d' }]);
    expect(issues.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^network.existing.vpcId: must exist/),
    ]);
  });

  test('awsdocs/amazon-ecr-user-guide#8: a policy of an endpoint without the buckets of the stack is a warning', async () => {
    const VpcId = 'vpc-0a1b2c3d';
    const toItself = { IpProtocol: '-1', UserIdGroupPairs: [{ GroupId: 'sg-0a1b2c3d' }] };
    const IpPermissionsEgress = [toItself, { IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] }];
    const group = { GroupId: 'sg-0a1b2c3d', VpcId, IpPermissions: [toItself], IpPermissionsEgress };
    const Statement = [{ Effect: 'Allow', Principal: '*', Action: 's3:*', Resource: 'arn:aws:s3:::lake/*' }];
    const PolicyDocument = JSON.stringify({ Statement });
    const endpoint = { VpcEndpointId: 'vpce-1', VpcEndpointType: 'Gateway' as const, RouteTableIds: ['rtb-1'] };
    ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{ VpcId }] });
    ec2.on(DescribeSubnetsCommand).resolves({ Subnets: [{ SubnetId: 'subnet-0a1b2c3d', VpcId }] });
    ec2.on(DescribeSecurityGroupsCommand).resolves({ SecurityGroups: [group] });
    ec2
      .on(DescribeRouteTablesCommand)
      .resolves({ RouteTables: [{ RouteTableId: 'rtb-1', Associations: [{ Main: true }] }] });
    ec2.on(DescribeVpcEndpointsCommand).resolves({
      VpcEndpoints: [{ ...endpoint, ServiceName: 'com.amazonaws.us-west-2.s3', PolicyDocument }],
    });
    const buckets = 'storage: { buckets: { data: lake } }';
    const { issues } = await environment(FILE(`account: "111122223333"\n${EXISTING}\n${buckets}`));
    expect(issues.map(({ level, message }) => `${level} ${message}`)).toContain(
      'warning network.existing.vpcId: should have endpoints whose policies allow s3:GetObject and s3:PutObject for arn:aws:s3:::slipway-lab-111122223333-us-west-2-checkpoints, arn:aws:s3:::slipway-lab-111122223333-us-west-2-artifacts, got the policy of vpce-1, which does not; extend it; what it leaves out is denied',
    );
  });

  test('a network that the caller may not look at is not known', async () => {
    for (const command of [DescribeVpcsCommand, DescribeSubnetsCommand, DescribeSecurityGroupsCommand])
      ec2.on(command as never).rejects(failing('UnauthorizedOperation', 403));
    const { checks } = await environment(FILE(`account: "111122223333"\n${EXISTING}`));
    expect(checks).toMatchObject([{ name: 'existing network', verdict: 'unknown' }]);
    expect(checks[0]?.missingPermission).toContain('ec2:DescribeRouteTables');
  });
});

test('fails: without credentials no check says that something cannot be used', async () => {
  const work = check('execution role', 'iam:GetRole', () =>
    Promise.reject(Object.assign(new Error('Could not load credentials'), { name: 'CredentialsProviderError' })),
  );
  await expect(work).rejects.toThrow(
    'reading the execution role: must have valid AWS credentials, got Could not load credentials; sign in',
  );
});
