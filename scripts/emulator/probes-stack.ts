// Defects that deploys, failures and deletions of whole stacks show.
import {
  CloudFormationClient,
  CreateStackCommand,
  DescribeStackEventsCommand,
  UpdateStackCommand,
  waitUntilStackCreateComplete,
  waitUntilStackUpdateComplete,
} from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DeleteItemCommand, DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { IAMClient, SimulatePrincipalPolicyCommand } from '@aws-sdk/client-iam';
import { GetBucketPolicyCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { answerOf, excerpt, type Probe } from './probe';
import { ACCOUNT, REGION, type TableWorld, type Template } from './world';

const bucketOf = (name: string, what: string) => `slipway-${name}-${ACCOUNT}-${REGION}-${what}`;
const fill = (world: TableWorld, Bucket: string) =>
  new S3Client(world.client).send(new PutObjectCommand({ Bucket, Key: 'shared/tokens', Body: 'x' }));

/** A run whose quota is 0 in a new account: the deploy fails when it submits it, after everything else was made. */
const REFUSED_RUN = `name: refused
code: { source: ./code, entryPoint: hello.py }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;

async function failedFirstDeploy(world: TableWorld, name: string) {
  const lines = `${world.version.destroyable}runs: [{ file: refused.yaml, submit: on-change }]\n`;
  const files = { 'refused.yaml': REFUSED_RUN, 'code/hello.py': 'print("hello")\n' };
  const first = await world.deploy(await world.synth(name, lines, { files }));
  if (first.ok) throw new Error('the first deploy must fail');
  return { first, status: await world.status(name) };
}

const rollback: Probe = {
  finding: 3,
  defect:
    'A failed first deploy cannot be repeated: its buckets contain files, so that their deletion fails and their names stay in use.',
  async observe(world) {
    const { status } = await failedFirstDeploy(world, 'first');
    const second = await world.deploy(await world.synth('first', world.version.destroyable));
    const end = second.ok ? 'succeeds' : `fails as well, and leaves it ${excerpt(await world.status('first'), /^\w+/)}`;
    return {
      shows: !second.ok,
      saw: `after the failure the stack is ${excerpt(status, /^\w+/)}; the next deploy ${end}`,
    };
  },
};

const logs: Probe = {
  finding: 10,
  defect: 'The logs that the error message of a failed first deploy refers to are deleted with the stack.',
  async observe(world) {
    const { first } = await failedFirstDeploy(world, 'logs');
    const named = excerpt(first.said, /\/aws\/lambda\/[\w-]+|\/aws\/cloudformation\/[\w/-]+|Launcher\w+Logs[\w-]*/);
    const client = new CloudWatchLogsClient(world.client);
    const found = await client.send(new DescribeLogGroupsCommand({}));
    const left = (found.logGroups ?? []).filter(({ logGroupName }) => logGroupName?.includes('Slipway-logs')).length;
    return { shows: left === 0, saw: `the message refers to \`${named}\`; ${left} log groups of the stack are left` };
  },
};

const adoption: Probe = {
  finding: 4,
  defect: 'A deploy after a destroy fails because of the retained repository, also with `adopt: true`.',
  async observe(world) {
    const line = world.version.destroyable;
    const before = await world.synth('again', line);
    await required(world.deploy(before));
    await required(world.destroy(before));
    const second = await world.deploy(await world.synth('again', `${line}storage: { adopt: true }\n`));
    const saw = second.ok
      ? 'the second deploy succeeds'
      : `the second deploy fails: ${excerpt(second.said, /Resource of type[^.]*already exists/)}`;
    return { shows: !second.ok, saw };
  },
};

const deletion: Probe = {
  finding: 8,
  defect: '`retain: false` does not empty the buckets, so that the stack cannot be deleted.',
  async observe(world) {
    const assembly = await world.synth('gone', `${world.version.destroyable}storage: { retain: false }\n`);
    await required(world.deploy(assembly));
    await fill(world, bucketOf('gone', 'data'));
    const { ok } = await world.destroy(assembly);
    const status = await world.status('gone');
    return { shows: !ok, saw: status === 'gone' ? 'the stack is deleted with its data' : excerpt(status, /^.{0,120}/) };
  },
};

const refusal: Probe = {
  finding: 9,
  defect: 'A deletion that is rejected because of a live run leaves a stack that cannot be updated.',
  async observe(world) {
    const assembly = await world.synth('held', '');
    await required(world.deploy(assembly));
    const live = { runId: { S: 'live-1' }, item: { S: 'RUN' }, active: { S: 'active' } };
    const dynamo = new DynamoDBClient(world.client);
    await dynamo.send(new PutItemCommand({ TableName: 'slipway-held-runs', Item: live }));
    const { ok: isDeleted } = await world.destroy(assembly);
    const status = excerpt(await world.status('held'), /^\w+/);
    const { runId, item } = live;
    await dynamo.send(new DeleteItemCommand({ TableName: 'slipway-held-runs', Key: { runId, item } }));
    const { ok } = await world.deploy(await world.synth('held', 'storage: { checkpointExpirationDays: 91 }\n'));
    const end = isDeleted ? 'the stack is deleted' : `after the refusal the stack is ${status}`;
    return { shows: !ok, saw: `${end}; once the run has ended an update ${ok ? 'succeeds' : 'fails'}` };
  },
};

const tracking: Probe = {
  finding: 14,
  defect: 'An environment can name an MLflow tracking server, but the roles of its jobs are not allowed to use it.',
  async observe(world) {
    const server = `arn:aws:sagemaker:${REGION}:${ACCOUNT}:mlflow-tracking-server/shared`;
    const teams = `teams: { default: { mlflow: ["${server}"] } }\n`;
    // Version 0.1.0 knows servers in run files alone.
    const lines = world.version.destroyable ? `${world.version.destroyable}${teams}` : '';
    await required(world.deploy(await world.synth('flow', lines)));
    const asked = new SimulatePrincipalPolicyCommand({
      PolicySourceArn: `arn:aws:iam::${ACCOUNT}:role/slipway-flow-${REGION}-default-execution`,
      ActionNames: ['sagemaker-mlflow:LogMetric'],
      ResourceArns: [server],
    });
    const { EvaluationResults: [result] = [] } = await new IAMClient(world.client).send(asked);
    return { shows: result?.EvalDecision !== 'allowed', saw: `LogMetric as a job's role: ${result?.EvalDecision}` };
  },
};

const policies: Probe = {
  finding: 18,
  defect:
    'Bucket policies are deleted with the stack although the buckets are retained, which ends TLS-only access and log delivery.',
  async observe(world) {
    const assembly = await world.synth('kept', world.version.destroyable);
    await required(world.deploy(assembly));
    await fill(world, bucketOf('kept', 'data'));
    await required(world.destroy(assembly));
    const answer = await answerOf(
      new S3Client(world.client).send(new GetBucketPolicyCommand({ Bucket: bucketOf('kept', 'data') })),
    );
    return {
      shows: answer !== 'accepted',
      saw: answer === 'accepted' ? 'the policy still exists' : `GetBucketPolicy: ${answer}`,
    };
  },
};

const zones: Probe = {
  finding: 5,
  defect: 'A zone cannot be added with `vpc-nat`: the new subnet overlaps an existing one.',
  async observe(world) {
    const networkOf = async (...ids: number[]) => {
      const zone = ids.map((id) => `usw2-az${id}`).join(', ');
      const lines = `network: { mode: vpc-nat, availabilityZoneIds: [${zone}] }\n`;
      return JSON.stringify(subnetsOf(world.template(await world.synth('zones', lines, { isReal: true }))));
    };
    const client = new CloudFormationClient(world.client);
    const StackName = 'zones';
    await client.send(new CreateStackCommand({ StackName, TemplateBody: await networkOf(1, 2) }));
    await waitUntilStackCreateComplete({ client, maxWaitTime: 60, minDelay: 1 }, { StackName });
    await client.send(new UpdateStackCommand({ StackName, TemplateBody: await networkOf(1, 2, 3) }));
    const ended = await waitUntilStackUpdateComplete({ client, maxWaitTime: 60, minDelay: 1 }, { StackName }).then(
      () => 'UPDATE_COMPLETE',
      () => 'failed',
    );
    const { StackEvents = [] } = await client.send(new DescribeStackEventsCommand({ StackName }));
    const reasons = StackEvents.map(({ ResourceStatusReason }) => ResourceStatusReason ?? '').join(' ');
    const shows = ended !== 'UPDATE_COMPLETE';
    return { shows, saw: shows ? excerpt(reasons, /The CIDR[^(]*\([^)]*\)/) : 'the update succeeds' };
  },
};

/** VPC and subnets alone: the rest of the network has types that MiniStack does not know. */
function subnetsOf({ Resources }: Template): Template {
  const kept = Object.entries(Resources).filter(([, { Type }]) => /^AWS::EC2::(VPC|Subnet)$/.test(Type));
  return { Resources: Object.fromEntries(kept.map(([id, { Type, Properties }]) => [id, { Type, Properties }])) };
}

async function required(outcome: Promise<{ ok: boolean; said: string }>): Promise<void> {
  const { ok, said } = await outcome;
  if (!ok) throw new Error(`must succeed, got ${said.slice(-1200)}`);
}

export const STACK_PROBES: readonly Probe[] = [rollback, adoption, zones, deletion, refusal, logs, tracking, policies];
