// The same path with IAM enforced (signatures, TLS): every call is made under the role that makes it on AWS. A statement that is
// taken away makes the path fail where that role needs it. At the end all decisions are held against the statements of the roles.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CloudFormationClient, ListStackResourcesCommand } from '@aws-sdk/client-cloudformation';
import {
  CloudWatchLogsClient,
  DescribeLogStreamsCommand,
  FilterLogEventsCommand,
  GetLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { GetRolePolicyCommand, IAMClient, ListRolePoliciesCommand, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, SageMakerClient, StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../lib/sandbox/testing';
import { allowingSids, decisionsByRole, denied, type RoleTemplate } from './support/decisions';
import { type Deployed, deployedSandbox } from './support/deployed';
import { ROOT } from './support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: fail, require: [{ instanceType: ml.m5.xlarge, count: 2 }] }
teams:
  default: { principals: ["arn:aws:iam::000000000000:root"], data: ["demo-tokens/"] }
  other: { principals: ["arn:aws:iam::000000000000:root"] }
access: { auditors: ["arn:aws:iam::000000000000:root"] }
`;
const QUOTAS = { 'L-CCE2AFA6': 8, 'L-00C91CB5': 8, 'L-622CFD70': 8 };
const ROLE = 'slipway-e2e-us-west-2';
const DATA = 'slipway-e2e-000000000000-us-west-2-data';
const CHECKPOINTS = 'slipway-e2e-000000000000-us-west-2-checkpoints';

interface Statement {
  Action: string | string[];
  Resource: string | string[];
}

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-iam-'));
let deployed: Deployed;
let researcher: Record<string, string>;
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS, { auth: true, decisionsFile: path.join(folder, 'decisions') });
  researcher = await assumed(`${ROLE}-default-researcher`);
  await upload();
});
afterAll(async () => {
  await deployed?.end();
  rmSync(folder, { recursive: true, force: true });
});

/** Credentials of a role, as environment variables. */
async function assumed(role: string): Promise<Record<string, string>> {
  const RoleArn = `arn:aws:iam::000000000000:role/${role}`;
  const { Credentials } = await deployed
    .client(STSClient)
    .send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'e2e' }));
  return {
    AWS_ACCESS_KEY_ID: Credentials?.AccessKeyId ?? '',
    AWS_SECRET_ACCESS_KEY: Credentials?.SecretAccessKey ?? '',
    AWS_SESSION_TOKEN: Credentials?.SessionToken ?? '',
  };
}

/** The name of the role that a function has. */
async function roleOf(FunctionName: string): Promise<string> {
  const { Role = '' } = await deployed.client(LambdaClient).send(new GetFunctionConfigurationCommand({ FunctionName }));
  return path.basename(Role);
}

/** Raw text for the tokenise step, put there by the account's owner. */
const upload = () =>
  deployed.call(path.join(ROOT, '.slipway/python/bin/aws'), [
    's3',
    'cp',
    path.join(ROOT, 'lib/rules'),
    `s3://${DATA}/demo-raw/`,
    '--recursive',
    '--no-progress',
  ]);

const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');
const run = (name: string) => path.join(ROOT, 'runs', name);
const small = ['--set', 'training.microBatchSize=1', '--set', 'training.globalBatchSize=4'];
const short = [...small, '--set', 'training.steps=8', '--set', 'code.arguments.save-every-steps=2'];
/** One rank: what a role may do does not depend on how many ask. */
const alone = [
  '--set',
  'compute.instanceCount=1',
  '--set',
  'distribution.processesPerHost=1',
  '--set',
  'limits.maxAttempts=1',
];

/** Takes one action away from the inline policies of a role while `body` runs. */
async function without(RoleName: string, action: string, body: () => Promise<void>): Promise<void> {
  const iam = deployed.client(IAMClient);
  const put = (PolicyName: string, PolicyDocument: string) =>
    iam.send(new PutRolePolicyCommand({ RoleName, PolicyName, PolicyDocument }));
  const { PolicyNames = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName }));
  const before: [string, string][] = [];
  for (const PolicyName of PolicyNames) {
    const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
    const document = JSON.parse(decodeURIComponent(PolicyDocument)) as { Statement: Statement[] };
    before.push([PolicyName, JSON.stringify(document)]);
    const Statement = document.Statement.flatMap((s) => {
      const actions = [s.Action].flat().filter((a) => a !== action);
      return actions.length === 0 ? [] : [{ ...s, Action: actions }];
    });
    await put(PolicyName, JSON.stringify({ ...document, Statement }));
  }
  expect(
    before.some(([, text]) => text.includes(action)),
    `${RoleName} must have ${action} to take away`,
  ).toBe(true);
  try {
    await body();
  } finally {
    for (const [name, text] of before) await put(name, text);
  }
}

/** Until the bucket holds a committed checkpoint of the run. */
async function untilCommitted(runId: string): Promise<void> {
  const s3 = deployed.client(S3Client);
  const list = new ListObjectsV2Command({ Bucket: CHECKPOINTS, Prefix: `runs/default/${runId}/` });
  await eventually(
    async () => (await s3.send(list)).Contents?.some(({ Key }) => Key?.endsWith('COMMITTED.json')) ?? false,
    { timeoutSeconds: 120, intervalSeconds: 0.3, what: `a committed checkpoint of ${runId}` },
  );
}

const launch = (file: string, id: string, ...more: string[]) =>
  deployed.slipwayAs(researcher, 'launch', run(file), '--yes', '--wait', '--json', '--run-id', id, ...more);

describe('with IAM enforced', () => {
  test('data preparation, preflight and a run go through under the roles themselves', async () => {
    const tokens = await launch('demo-tokenize.yaml', 'tokens');
    expect(tokens.code, tokens.stderr).toBe(0);
    const preflight = await deployed.slipwayAs(
      researcher,
      'preflight',
      run('demo.yaml'),
      '--json',
      '--set',
      'image.kind=dlc',
      '--set',
      'image.version=2.8',
    );
    expect(preflight.code, preflight.stdout + preflight.stderr).toBe(0);
    const done = await launch('demo.yaml', 'allowed', ...short, ...alone);
    expect(done.code, done.stderr).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({ state: 'completed', committedStep: 8 });
  });

  test('logs and jobs of a team are read by its researchers alone, through the launcher and past it', async () => {
    const own = await deployed.slipwayAs(researcher, 'logs', 'allowed');
    expect(own.code, own.stderr).toBe(0);
    expect(own.stdout).toContain('slipway {');
    const report = await deployed.slipwayAs(researcher, 'report', 'allowed', '--json');
    expect(report.code, report.stderr).toBe(0);
    const other = await assumed(`${ROLE}-other-researcher`);
    const through = await deployed.tryCall(
      process.execPath,
      [CLI, 'logs', 'allowed', '--environment', 'e2e/other', '--region', 'us-west-2'],
      other,
    );
    expect(through.code, through.stdout).toBe(1);
    expect(through.stderr).toContain('must be a run of team other');
    const logs = deployed.client(CloudWatchLogsClient, other);
    const logGroupName = '/aws/sagemaker/TrainingJobs';
    const logStreamName = 'e2e-allowed-a001/algo-1';
    const look = (credentials: Record<string, string>) =>
      deployed
        .client(SageMakerClient, credentials)
        .send(new DescribeTrainingJobCommand({ TrainingJobName: 'e2e-allowed-a001' }));
    const refused = { name: expect.stringMatching(/^AccessDenied/) };
    await expect(logs.send(new FilterLogEventsCommand({ logGroupName }))).rejects.toMatchObject(refused);
    await expect(logs.send(new DescribeLogStreamsCommand({ logGroupName }))).rejects.toMatchObject(refused);
    await expect(logs.send(new GetLogEventsCommand({ logGroupName, logStreamName }))).rejects.toMatchObject(refused);
    await expect(look(other)).rejects.toMatchObject(refused);
    expect(await look(researcher)).toMatchObject({ TrainingJobStatus: 'Completed' });
  });

  test('an auditor lists runs and reads status, events and logs, and can stop and note nothing', async () => {
    const auditor = await assumed(`${ROLE}-auditor`);
    const ask = async (...words: string[]) => {
      const { code, stdout, stderr } = await deployed.slipwayAs(auditor, ...words, '--json');
      expect([words, code, stderr]).toEqual([words, 0, expect.not.stringContaining('must be')]);
      return stdout;
    };
    const { runs } = JSON.parse(await ask('list'));
    expect(runs.map(({ runId }: { runId: string }) => runId)).toEqual(['allowed', 'tokens']);
    expect(JSON.parse(await ask('status', 'allowed'))).toMatchObject({ state: 'completed', committedStep: 8 });
    expect(await ask('events', 'allowed')).toContain('"runId":"allowed"');
    expect(await ask('logs', 'allowed')).toContain('algo-1');
    expect(JSON.parse(await ask('team', 'e2e')).teams).toMatchObject([{ team: 'default' }, { team: 'other' }]);
    for (const words of [
      ['stop', 'allowed'],
      ['note', 'allowed', 'seen'],
    ]) {
      const refused = await deployed.slipwayAs(auditor, ...words);
      expect([words, refused.code]).toEqual([words, 3]);
      expect(refused.stderr).toContain('must be permitted');
    }
  });

  test('stop is asked by the researcher and done by reconcile, after a checkpoint', async () => {
    const started = await deployed.slipwayAs(
      researcher,
      'launch',
      run('demo.yaml'),
      '--yes',
      '--run-id',
      'stopped',
      '--set',
      'training.steps=2000',
      '--set',
      'code.arguments.save-every-steps=2',
      // It waits to be stopped, and need not train meanwhile.
      '--set',
      'code.arguments.minimum-step-seconds=0.5',
      ...alone,
    );
    expect(started.code, started.stderr).toBe(0);
    await untilCommitted('stopped');
    expect((await deployed.slipwayAs(researcher, 'stop', 'stopped')).code).toBe(0);
    const ended = await deployed.slipwayAs(researcher, 'status', 'stopped', '--wait', '--json');
    expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'stopped', desiredState: 'stop' });
  });

  test('a researcher may not stop a job past the launcher', async () => {
    const stop = new StopTrainingJobCommand({ TrainingJobName: 'e2e-allowed-a001' });
    const denied = deployed.client(SageMakerClient, researcher).send(stop);
    await expect(denied).rejects.toThrow('sagemaker:StopTrainingJob');
  });

  test("without the researcher's lambda:InvokeFunction, launch is denied and says so", async () => {
    await without(`${ROLE}-default-researcher`, 'lambda:InvokeFunction', async () => {
      const denied = await launch('demo.yaml', 'denied-invoke', ...short);
      expect(denied.code).toBe(3);
      expect(denied.stderr).toContain('lambda:InvokeFunction');
    });
  });

  test("without reconcile's sagemaker:CreateTrainingJob, the run waits for a person and says what was denied", async () => {
    await without(await roleOf('slipway-e2e-reconcile'), 'sagemaker:CreateTrainingJob', async () => {
      const denied = await launch('demo.yaml', 'denied-create', ...short);
      expect(denied.code).toBe(4);
      expect(denied.stderr).toContain('sagemaker:CreateTrainingJob');
    });
  });

  test("without the trainer's s3:DeleteObject, a save cannot take its old marker away and the run says so", async () => {
    await without(`${ROLE}-default-execution`, 's3:DeleteObject', async () => {
      const denied = await launch('demo.yaml', 'denied-delete', ...short, ...alone);
      expect(denied.code).toBe(4);
      expect(denied.stderr).toMatch(/a checkpoint could not be written.*403/);
    });
  });
});

/** Statements that none of these calls needs, and who needs them. test/laws/calls has the call or the page for each. */
const NOT_PLAYED: Readonly<Record<string, string>> = {
  WriteOwnLogs: 'Lambda writes the log of a function',
  KeepFailedEvents: 'Lambda sends events that failed to the dead-letter queue',
  PollRunQueue: 'Lambda polls the queue of a function',
  ReadEncrypted:
    'S3 and DynamoDB use the key in the name of the caller, and Lambda that of the variables; MiniStack asks for no key',
  UseDataKey: 'S3 and DynamoDB use the key in the name of the caller; MiniStack asks for no key',
  UseOperationsKey: 'SQS uses the key in the name of the caller; MiniStack asks for no key',
  UseKeyThroughS3: 'S3 uses the key in the name of the caller; MiniStack asks for no key',
  LogInToRegistries: 'SageMaker pulls the image',
  PullImages: 'SageMaker pulls the image',
  WriteMetrics: 'SageMaker and scripts put metrics; the trainer of this run puts none',
  WriteOwnOutputs: 'SageMaker uploads outputs; these jobs have none',
  EncryptVolumes: 'SageMaker encrypts volumes',
  SeeKey: 'SageMaker encrypts volumes',
  SeeNetwork: 'SageMaker puts interfaces into the VPC',
  MakeInterfaces: 'SageMaker puts interfaces into the VPC',
  HandOverInterfaces: 'SageMaker puts interfaces into the VPC',
  SeeUploads: 'a run with code of its own (environment.test.ts)',
  TellWhatIsMissing: 'a file that is not there',
  SeeTrainingPlans: 'preflight, launch and plan of a run in a training plan',
  UseTrainingPlans: 'a run in a training plan (test/sandbox/rules-of-permissions.test.ts)',
  TagUncommittedCheckpoints: 'a save that an ended attempt left unfinished',
  SeeImages: 'an image of the repository of the environment',
  ReadData: 'the AWS CLI in the hands of a researcher',
  WriteOwnData: 'the AWS CLI in the hands of a researcher',
};

describe('what IAM was asked', () => {
  const template = (): RoleTemplate =>
    JSON.parse(readFileSync(path.join(deployed.folder, 'cdk.out/Slipway-e2e-us-west-2.template.json'), 'utf8'));

  /** Name of a role by its logical id. */
  async function roleNames(): Promise<Map<string, string>> {
    const list = new ListStackResourcesCommand({ StackName: 'Slipway-e2e-us-west-2' });
    const { StackResourceSummaries: all = [] } = await deployed.client(CloudFormationClient).send(list);
    const roles = all.filter(({ ResourceType }) => ResourceType === 'AWS::IAM::Role');
    return new Map(roles.map(({ LogicalResourceId: id = '', PhysicalResourceId: name = '' }) => [id, name]));
  }

  test('every call of ours was allowed, but for those that the tests above are about', async () => {
    const reconcile = await roleOf('slipway-e2e-reconcile');
    const others = ['logs:DescribeLogStreams', 'logs:FilterLogEvents', 'logs:GetLogEvents'];
    expect(denied(decisionsByRole(path.join(folder, 'decisions')))).toEqual(
      [
        `${reconcile} sagemaker:CreateTrainingJob`,
        `${ROLE}-auditor lambda:InvokeFunction`,
        `${ROLE}-default-execution s3:DeleteObject`,
        `${ROLE}-default-researcher lambda:InvokeFunction`,
        `${ROLE}-default-researcher sagemaker:StopTrainingJob`,
        ...[...others, 'sagemaker:DescribeTrainingJob'].map((action) => `${ROLE}-other-researcher ${action}`),
      ].sort(),
    );
  });

  test('each statement of launcher, jobs and researcher was needed by a call, or says here who needs it', async () => {
    const [names, decisions] = [await roleNames(), decisionsByRole(path.join(folder, 'decisions'))];
    const looked = [
      'AuditFunctionRole',
      'LauncherControlRole',
      'LauncherReconcileRole',
      'Rolesdefault',
      'Accessdefaultresearcher',
    ];
    const ids = [...names.keys()].filter((id) => looked.some((prefix) => id.startsWith(prefix)));
    expect(ids.length).toBe(6);
    const unneeded = ids.flatMap((id) => {
      const needed = (decisions.get(names.get(id) ?? '') ?? []).map(({ statement }) => statement);
      return allowingSids(template(), id).filter((sid) => !needed.includes(sid));
    });
    expect([...new Set(unneeded)].sort()).toEqual(Object.keys(NOT_PLAYED).sort());
  });
});
