// Defects that what is deployed shows when something uses it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, DescribeStackResourcesCommand } from '@aws-sdk/client-cloudformation';
import { CloudWatchClient, DescribeAlarmHistoryCommand, SetAlarmStateCommand } from '@aws-sdk/client-cloudwatch';
import { CloudWatchLogsClient, CreateLogGroupCommand } from '@aws-sdk/client-cloudwatch-logs';
import {
  BatchGetBuildsCommand,
  CodeBuildClient,
  CreateProjectCommand,
  StartBuildCommand,
} from '@aws-sdk/client-codebuild';
import { DescribeVpcEndpointsCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateRepositoryCommand, ECRClient } from '@aws-sdk/client-ecr';
import {
  CreateRoleCommand,
  IAMClient,
  PutRolePolicyCommand,
  SimulatePrincipalPolicyCommand,
  UpdateAssumeRolePolicyCommand,
} from '@aws-sdk/client-iam';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SNSClient, SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, GetQueueAttributesCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { actionsOf, contextOf, resourcesOf } from '../../lib/aws/roles/statement';
import { eventually } from '../../lib/sandbox/testing';
import { rolePolicies } from '../../lib/verify/role-policies';
import { answerOf, type Deployed, excerpt, type Probe } from './probe';
import { ACCOUNT, REGION, type TableWorld } from './world';

const trust = (Principal: object) =>
  JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Principal, Action: 'sts:AssumeRole' }] });

async function resourcesOfType(world: TableWorld, { name }: Deployed, type: string) {
  const StackName = `Slipway-${name}-${REGION}`;
  const { StackResources = [] } = await new CloudFormationClient(world.client).send(
    new DescribeStackResourcesCommand({ StackName }),
  );
  return StackResources.filter(({ ResourceType }) => ResourceType === type);
}

/** Physical id of the one resource of a type whose logical id matches. */
async function resourceId(world: TableWorld, deployed: Deployed, type: string, logical: RegExp): Promise<string> {
  const found = (await resourcesOfType(world, deployed, type)).find(({ LogicalResourceId: id }) =>
    logical.test(id ?? ''),
  );
  if (!found?.PhysicalResourceId) throw new Error(`${type} ${logical}: must be in the stack, got none`);
  return found.PhysicalResourceId;
}

/** Credentials of a role of the stack: its trust is widened to the account, its permissions stay. */
async function credentialsOf(world: TableWorld, RoleName: string) {
  const PolicyDocument = trust({ AWS: `arn:aws:iam::${ACCOUNT}:root` });
  await new IAMClient(world.client).send(new UpdateAssumeRolePolicyCommand({ RoleName, PolicyDocument }));
  const { Credentials: got } = await new STSClient(world.client).send(
    new AssumeRoleCommand({ RoleArn: `arn:aws:iam::${ACCOUNT}:role/${RoleName}`, RoleSessionName: 'probe' }),
  );
  return {
    accessKeyId: got?.AccessKeyId ?? '',
    secretAccessKey: got?.SecretAccessKey ?? '',
    sessionToken: got?.SessionToken ?? '',
  };
}

const image: Probe = {
  finding: 2,
  defect: 'The image build defines a shell function in one command and calls it in later commands.',
  async observe(world) {
    const real = world.template(await world.synth('image', '', { isReal: true }));
    const project = Object.values(real.Resources).find(({ Type }) => Type === 'AWS::CodeBuild::Project');
    const source = project?.Properties?.Source as { BuildSpec: string } | undefined;
    const build = await built(world, source?.BuildSpec ?? '');
    const failed = build?.phases?.find(({ phaseStatus }) => phaseStatus === 'FAILED');
    const why = excerpt(failed?.contexts?.[0]?.message ?? '', /executing command: (.{0,40}).*(exit status \d+)/s);
    const saw = failed
      ? `${build?.buildStatus} in ${failed.phaseType}: ${why.replaceAll('\n', ' ')}`
      : `${build?.buildStatus}`;
    return { shows: build?.buildStatus === 'FAILED', saw };
  },
};

/** Runs the version's build specification on the version's own Dockerfile. */
async function built(world: TableWorld, buildspec: string) {
  const { repository } = await new ECRClient(world.client).send(
    new CreateRepositoryCommand({ repositoryName: 'probe' }),
  );
  const archive = path.join(world.folder, 'training.zip');
  const training = path.join(world.version.folder, 'containers', 'training');
  execFileSync('python3', ['-m', 'zipfile', '-c', archive, 'Dockerfile', 'scripts'], { cwd: training });
  const s3 = new S3Client(world.client);
  const LocationConstraint = REGION;
  await s3.send(new CreateBucketCommand({ Bucket: 'probe-source', CreateBucketConfiguration: { LocationConstraint } }));
  await s3.send(new PutObjectCommand({ Bucket: 'probe-source', Key: 'training.zip', Body: readFileSync(archive) }));
  const iam = new IAMClient(world.client);
  const { Role } = await iam.send(
    new CreateRoleCommand({
      RoleName: 'probe-build',
      AssumeRolePolicyDocument: trust({ Service: 'codebuild.amazonaws.com' }),
    }),
  );
  await allowEverything(iam, 'probe-build');
  const codebuild = new CodeBuildClient(world.client);
  const variables = {
    REPOSITORY_URI: repository?.repositoryUri ?? '',
    BASE_IMAGE: `763104351884.dkr.ecr.${REGION}.amazonaws.com/pytorch-training:2.7`,
    DOCKERFILE: 'Dockerfile',
    IMAGE_TAG: 'probe',
  };
  await codebuild.send(
    new CreateProjectCommand({
      name: 'probe',
      serviceRole: Role?.Arn,
      source: { type: 'S3', location: 'probe-source/training.zip', buildspec },
      artifacts: { type: 'NO_ARTIFACTS' },
      environment: {
        type: 'LINUX_CONTAINER',
        computeType: 'BUILD_GENERAL1_SMALL',
        image: 'aws/codebuild/standard:7.0',
        privilegedMode: true,
        environmentVariables: Object.entries(variables).map(([name, value]) => ({ name, value })),
      },
    }),
  );
  const { build } = await codebuild.send(new StartBuildCommand({ projectName: 'probe' }));
  return eventually(
    async () => {
      const { builds } = await codebuild.send(new BatchGetBuildsCommand({ ids: [build?.id ?? ''] }));
      return builds?.[0]?.buildStatus !== 'IN_PROGRESS' && builds?.[0];
    },
    { what: 'end of the build' },
  );
}

async function allowEverything(iam: IAMClient, RoleName: string): Promise<void> {
  const statement = { Effect: 'Allow', Action: '*', Resource: '*' };
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await iam.send(new PutRolePolicyCommand({ RoleName, PolicyName: 'all', PolicyDocument }));
}

const alarms: Probe = {
  finding: 6,
  defect: 'The topic policy does not allow alarms to publish, so that none of the five alarms sends a notification.',
  async observe(world, deployed) {
    const topic = await resourceId(world, deployed, 'AWS::SNS::Topic', /./);
    const alarm = await resourceId(world, deployed, 'AWS::CloudWatch::Alarm', /NoTicks|Reconcile/);
    const sqs = new SQSClient(world.client);
    const open = { Effect: 'Allow', Principal: '*', Action: 'sqs:SendMessage', Resource: '*' };
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [open] });
    const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: 'probe', Attributes: { Policy } }));
    const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }));
    await new SNSClient(world.client).send(
      new SubscribeCommand({ TopicArn: topic, Protocol: 'sqs', Endpoint: Attributes?.QueueArn }),
    );
    const cloudwatch = new CloudWatchClient(world.client);
    await cloudwatch.send(new SetAlarmStateCommand({ AlarmName: alarm, StateValue: 'ALARM', StateReason: 'probe' }));
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 3 }));
    const { AlarmHistoryItems: [item] = [] } = await cloudwatch.send(
      new DescribeAlarmHistoryCommand({ AlarmName: alarm, HistoryItemType: 'Action' }),
    );
    const why = excerpt(item?.HistorySummary ?? '', /is not authorized[^"]*resource|does not have authorization[^"]*/);
    return {
      shows: Messages.length === 0,
      saw: Messages.length > 0 ? 'the notification arrives' : `no notification: ${why}`,
    };
  },
};

const quotas: Probe = {
  finding: 7,
  defect:
    'servicequotas:GetServiceQuota is allowed on an ARN, although one edition of the reference assigns it no resource type.',
  async observe(world, deployed) {
    const role = await resourceId(world, deployed, 'AWS::IAM::Role', /Reconcile.*Role/);
    const client = new ServiceQuotasClient({
      ...world.client,
      endpoint: world.sandbox.endpoints.serviceQuotas,
      credentials: await credentialsOf(world, role),
    });
    const call = new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode: 'L-611FA074' });
    const answer = await answerOf(client.send(call));
    return { shows: answer.startsWith('AccessDenied'), saw: `GetServiceQuota as reconcile: ${answer}` };
  },
};

const plans: Probe = {
  finding: 13,
  defect:
    'CreateTrainingJob is not allowed on `reserved-capacity/*`, on which a job in a training plan is authorized as well.',
  async observe(world, deployed) {
    const role = await resourceId(world, deployed, 'AWS::IAM::Role', /Reconcile.*Role/);
    const iam = new IAMClient(world.client);
    const { arn, statements } = await rolePolicies(iam, role);
    const statement = statements.find(
      (each) =>
        actionsOf(each).includes('sagemaker:CreateTrainingJob') &&
        resourcesOf(each).some((r) => /training-plan/.test(r)),
    );
    const capacity = `arn:aws:sagemaker:${REGION}:${ACCOUNT}:reserved-capacity/behind-the-plan`;
    const asked = new SimulatePrincipalPolicyCommand({
      PolicySourceArn: arn,
      ActionNames: ['sagemaker:CreateTrainingJob'],
      ResourceArns: [world.hasRules ? capacity : capacity.replace('reserved-capacity', 'training-plan')],
      ContextEntries: statement ? contextOf(statement) : [],
    });
    const { EvaluationResults: [result] = [] } = await iam.send(asked);
    const what = world.hasRules ? 'the capacity' : 'the plan alone';
    return { shows: result?.EvalDecision !== 'allowed', saw: `evaluated on ${what}: ${result?.EvalDecision}` };
  },
};

const endpoints: Probe = {
  finding: 15,
  defect:
    'Interface endpoints have no policy: data can be copied out through them with credentials of another account.',
  async observe(world) {
    // This version makes endpoints where options ask for them.
    const name = 'ends';
    const lines = world.version.destroyable ? 'network: { endpoints: [logs] }\n' : '';
    const made = await world.deploy(await world.synth(name, lines));
    if (!made.ok) throw new Error(`must deploy, got ${made.said.slice(-1200)}`);
    const ids = (await resourcesOfType(world, { name }, 'AWS::EC2::VPCEndpoint')).map((r) => r.PhysicalResourceId);
    const { VpcEndpoints = [] } = await new EC2Client(world.client).send(new DescribeVpcEndpointsCommand({}));
    const logs = VpcEndpoints.find((e) => ids.includes(e.VpcEndpointId) && e.ServiceName?.endsWith('.logs'));
    if (!logs?.VpcEndpointId) throw new Error('an endpoint for logs must be there');
    const answer = await answerOf(createGroupThrough(world, logs.VpcEndpointId));
    return { shows: answer === 'accepted', saw: `CreateLogGroup of another account through the endpoint: ${answer}` };
  },
};

function createGroupThrough(world: TableWorld, endpoint: string): Promise<unknown> {
  const credentials = { accessKeyId: '999999999999', secretAccessKey: 'test' };
  const client = new CloudWatchLogsClient({ ...world.client, credentials });
  client.middlewareStack.add(
    (next) => (args) => {
      (args.request as { headers: Record<string, string> }).headers['x-slipway-vpc-endpoint'] = endpoint;
      return next(args);
    },
    { step: 'build' },
  );
  return client.send(new CreateLogGroupCommand({ logGroupName: '/taken/out' }));
}

export const SERVICE_PROBES: readonly Probe[] = [image, alarms, quotas, plans, endpoints];
