// What IAM and endpoint policies allow under enforcement, each with the rules and without them: without its rule a test fails.
import { CloudWatchLogsClient, CreateLogGroupCommand } from '@aws-sdk/client-cloudwatch-logs';
import { CreateVpcCommand, CreateVpcEndpointCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateRepositoryCommand, DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { CreateTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { CreateQueueCommand, SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { errorOf, policy, type RuleWorld, RuleWorlds, roleFor } from './rule-worlds';
import { bashJob } from './support';

const ACCOUNT = '000000000000';
const worlds = new RuleWorlds();
beforeAll(() => worlds.open({ auth: true }), 180_000);
afterAll(() => worlds.close());

/** Options of clients with a new role that has these statements. */
async function as(world: RuleWorld, RoleName: string, ...statements: object[]) {
  const iam = new IAMClient(world.options);
  const AssumeRolePolicyDocument = JSON.stringify(
    policy({ Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` }, Action: 'sts:AssumeRole' }),
  );
  await iam.send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument }));
  await iam.send(
    new PutRolePolicyCommand({ RoleName, PolicyName: 'own', PolicyDocument: JSON.stringify(policy(...statements)) }),
  );
  const assume = new AssumeRoleCommand({
    RoleArn: `arn:aws:iam::${ACCOUNT}:role/${RoleName}`,
    RoleSessionName: 'test',
  });
  const { Credentials: got } = await new STSClient(world.options).send(assume);
  const credentials = {
    accessKeyId: got?.AccessKeyId ?? '',
    secretAccessKey: got?.SecretAccessKey ?? '',
    sessionToken: got?.SessionToken ?? '',
  };
  return { ...world.options, credentials, endpoint: world.sandbox.endpoints.sagemaker };
}

test('action-resources: an action that an edition of the reference gives no resource type needs *', async () => {
  const QUOTA = `arn:aws:servicequotas:us-east-1:${ACCOUNT}:sagemaker/*`;
  const { applied, off } = await worlds.both(async (world) => {
    const read = async (role: string, Resource: string) => {
      const client = new ServiceQuotasClient(
        await as(world, role, { Action: 'servicequotas:GetServiceQuota', Resource }),
      );
      return errorOf(client.send(new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode: 'L-00C91CB5' })));
    };
    return [await read('scoped', QUOTA), await read('open', '*')];
  });
  expect(applied).toEqual(['AccessDeniedException', 'accepted']);
  expect(off).toEqual(['accepted', 'accepted']);
});

test('action-resources: a condition on a key that the action does not support never holds', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    await new IAMClient(world.options).send(
      new CreateRoleCommand({
        RoleName: 'trainer',
        AssumeRolePolicyDocument: JSON.stringify(
          roleFor('sagemaker.amazonaws.com').Properties.AssumeRolePolicyDocument,
        ),
      }),
    );
    const client = new SageMakerClient(
      await as(
        world,
        'tagger',
        { Action: ['sagemaker:CreateTrainingJob', 'iam:PassRole'], Resource: '*' },
        {
          Action: 'sagemaker:AddTags',
          Resource: '*',
          Condition: {
            'ForAllValues:StringLike': { 'sagemaker:InstanceTypes': 'ml.m5.*' },
            Null: { 'sagemaker:InstanceTypes': 'false' },
          },
        },
      ),
    );
    const request = bashJob({ roleArn: `arn:aws:iam::${ACCOUNT}:role/trainer` }, 'tagged', 'true');
    return errorOf(client.send(new CreateTrainingJobCommand({ ...request, Tags: [{ Key: 'a', Value: 'b' }] })));
  });
  expect(applied).toBe('AccessDeniedException');
  expect(off).toBe('accepted');
});

test('action-resources: a batch of messages needs the permission for one', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    const { QueueUrl } = await new SQSClient(world.options).send(new CreateQueueCommand({ QueueName: 'batches' }));
    const send = async (Action: string) => {
      const role = await as(world, Action.replace(':', '-'), { Action, Resource: '*' });
      const client = new SQSClient({ ...role, endpoint: world.sandbox.endpoints.aws });
      const Entries = [{ Id: '0', MessageBody: 'one' }];
      return errorOf(client.send(new SendMessageBatchCommand({ QueueUrl, Entries })));
    };
    return [await send('sqs:SendMessage'), await send('sqs:ReceiveMessage')];
  });
  expect(applied).toEqual(['accepted', 'AccessDenied']);
  expect(off).toEqual(['AccessDenied', 'AccessDenied']);
});

test('endpoint-policies: an endpoint with a policy keeps credentials of other accounts out', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    const ec2 = new EC2Client(world.options);
    const { Vpc } = await ec2.send(new CreateVpcCommand({ CidrBlock: '10.7.0.0/16' }));
    const endpoint = async (PolicyDocument?: string) => {
      const { VpcEndpoint } = await ec2.send(
        new CreateVpcEndpointCommand({
          VpcId: Vpc?.VpcId,
          ServiceName: 'com.amazonaws.us-east-1.logs',
          VpcEndpointType: 'Interface',
          PolicyDocument,
        }),
      );
      return VpcEndpoint?.VpcEndpointId ?? '';
    };
    const own = policy({
      Principal: '*',
      Action: '*',
      Resource: '*',
      Condition: { StringEquals: { 'aws:PrincipalAccount': ACCOUNT, 'aws:ResourceAccount': ACCOUNT } },
    });
    const [open, closed] = [await endpoint(), await endpoint(JSON.stringify(own))];
    const through = (id: string, accessKeyId: string, logGroupName: string) => {
      const logs = new CloudWatchLogsClient({
        ...world.options,
        credentials: { accessKeyId, secretAccessKey: 'test' },
      });
      logs.middlewareStack.add(
        (next) => (args) => {
          (args.request as { headers: Record<string, string> }).headers['x-slipway-vpc-endpoint'] = id;
          return next(args);
        },
        { step: 'build' },
      );
      return errorOf(logs.send(new CreateLogGroupCommand({ logGroupName })));
    };
    return [
      await through(open, '999999999999', '/taken'),
      await through(closed, '999999999999', '/kept'),
      await through(closed, ACCOUNT, '/own'),
    ];
  });
  expect(applied).toEqual(['accepted', 'AccessDeniedException', 'accepted']);
  expect(off).toEqual(['accepted', 'accepted', 'accepted']);
});

test('a job in a training plan needs a permission for the plan and for the capacity behind it', async () => {
  const JOBS = `arn:aws:sagemaker:us-east-1:${ACCOUNT}`;
  const plan = `${JOBS}:training-plan/tp`;
  const { applied } = await worlds.both(async (world) => {
    const create = async (role: string, ...resources: string[]) => {
      const client = new SageMakerClient(
        await as(
          world,
          role,
          { Action: 'sagemaker:CreateTrainingJob', Resource: resources.map((name) => `${JOBS}:${name}/*`) },
          { Action: 'iam:PassRole', Resource: '*' },
        ),
      );
      const request = bashJob({ roleArn: `arn:aws:iam::${ACCOUNT}:role/trainer` }, role, 'true');
      const ResourceConfig = { ...request.ResourceConfig, TrainingPlanArn: plan, InstanceType: 'ml.m5.large' as const };
      return errorOf(client.send(new CreateTrainingJobCommand({ ...request, ResourceConfig })));
    };
    return [
      await create('plan-alone', 'training-job', 'training-plan'),
      await create('plan-and-capacity', 'training-job', 'training-plan', 'reserved-capacity'),
    ];
  });
  expect(applied).toEqual(['AccessDeniedException', 'accepted']);
});

test('answers: a role that may describe one repository may describe it by its name', async () => {
  const Resource = `arn:aws:ecr:us-east-1:${ACCOUNT}:repository/own`;
  const { applied, off } = await worlds.both(async (world) => {
    for (const repositoryName of ['own', 'other'])
      await new ECRClient(world.options).send(new CreateRepositoryCommand({ repositoryName }));
    const role = await as(world, 'describes-own', { Action: 'ecr:DescribeRepositories', Resource });
    const client = new ECRClient({ ...role, endpoint: world.sandbox.endpoints.aws });
    const describe = (name: string) =>
      errorOf(client.send(new DescribeRepositoriesCommand({ repositoryNames: [name] })));
    return [await describe('own'), await describe('other')];
  });
  expect(applied).toEqual(['accepted', 'AccessDeniedException']);
  expect(off).toEqual(['AccessDeniedException', 'AccessDeniedException']);
});
