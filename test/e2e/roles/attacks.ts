// A member of team `other` who wants to hurt team `default`, with nothing but a researcher's credentials: through the services, through the
// launcher, and with code of a job. Everything is refused, and no object, run or job of team `default` is another afterwards.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { GenerateDataKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  GetFunctionConfigurationCommand,
  InvokeCommand,
  LambdaClient,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  PutObjectTaggingCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  AddTagsCommand,
  CreateTrainingJobCommand,
  type CreateTrainingJobCommandInput,
  DescribeTrainingJobCommand,
  SageMakerClient,
  StopTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { GetParameterCommand, PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { beforeAll, expect, test } from 'vitest';
import { ENV } from '../../../lib/core/contracts/launcher';
import { ITEM, RUN_TABLE } from '../../../lib/core/contracts/storage';
import type { ClientOptions, Deployed } from '../support/deployed';
import { assumed, ROLE } from './credentials';

const ACCOUNT = '000000000000';
const bucket = (kind: string) => `slipway-e2e-${ACCOUNT}-us-west-2-${kind}`;
const [DATA, CHECKPOINTS, ARTIFACTS] = ['data', 'checkpoints', 'artifacts'].map(bucket) as [string, string, string];
/** What belongs to the other team, by bucket. */
const THEIRS: readonly [string, string][] = [
  [CHECKPOINTS, 'runs/default/'],
  [ARTIFACTS, 'runs/default/'],
  [DATA, 'teams/default/'],
];
const VICTIM = 'disturbed';
const CONTROL = 'slipway-e2e-control';
const DENIED = /AccessDenied|not authorized|AccessDeniedException/;

/** Code of a job that tries the same with the role of its team. */
const JOB_PY = `import boto3, json, os
s3 = boto3.client("s3")
done = []
for bucket, prefix in ${JSON.stringify(THEIRS)}:
    key = prefix + "${VICTIM}/step-14/COMMITTED.json"
    calls = {
        "list": lambda: s3.list_objects_v2(Bucket=bucket, Prefix=prefix),
        "get": lambda: s3.get_object(Bucket=bucket, Key=key),
        "put": lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"{}"),
        "tag": lambda: s3.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": [{"Key": "slipway", "Value": "leftover"}]}),
        "delete": lambda: s3.delete_object(Bucket=bucket, Key=key),
    }
    for name, call in calls.items():
        try:
            call()
            done.append(f"{name} s3://{bucket}/{prefix}")
        except Exception as error:
            if "AccessDenied" not in str(error) and "403" not in str(error):
                done.append(f"{name} s3://{bucket}/{prefix}: {error}")
print("slipway-attack " + json.dumps(done), flush=True)
`;

const RUN = `name: attack
code: { source: ./src, entryPoint: attack.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600, maxAttempts: 1 }
`;

/** Run files whose places are those of the other team, by what they try. */
const PLACES: Readonly<Record<string, string>> = {
  'their checkpoints as its own': `checkpoints: { mode: direct, s3: "s3://${CHECKPOINTS}/runs/default/${VICTIM}/" }`,
  'their checkpoints through a path': `checkpoints: { mode: direct, s3: "s3://${CHECKPOINTS}/runs/other/../default/${VICTIM}/" }`,
  'all teams as its own prefix': `checkpoints: { mode: direct, s3: "s3://${CHECKPOINTS}/runs/" }`,
  'a start from their checkpoints': `checkpoints: { mode: direct, startFrom: "s3://${CHECKPOINTS}/runs/default/${VICTIM}/" }`,
  'output into their folder': `output: { s3: "s3://${CHECKPOINTS}/runs/default/${VICTIM}/" }`,
  'their data': `data: [{ channel: train, s3: "s3://${DATA}/teams/default/models/" }]`,
  'their code as data': `data: [{ channel: train, s3: "s3://${ARTIFACTS}/runs/default/${VICTIM}/" }]`,
  'a team in the file': 'team: default',
  'the role of the other team': `executionRoleArn: "arn:aws:iam::${ACCOUNT}:role/${ROLE}-default-execution"`,
};

/** A client with the credentials of the attacker. */
type Client = <C>(Client: new (options: ClientOptions) => C) => C;
/** Calls by what they try. */
type Calls = Record<string, () => Promise<unknown>>;

function callsOnFiles(as: Client): Calls {
  const s3 = as(S3Client);
  const calls: Calls = {};
  for (const [Bucket, Prefix] of THEIRS) {
    const at = { Bucket, Key: `${Prefix}${VICTIM}/step-14/COMMITTED.json` };
    const Tagging = { TagSet: [{ Key: 'a', Value: 'b' }] };
    calls[`list ${Bucket}`] = () => s3.send(new ListObjectsV2Command({ Bucket, Prefix }));
    calls[`get ${Bucket}`] = () => s3.send(new GetObjectCommand(at));
    calls[`put ${Bucket}`] = () => s3.send(new PutObjectCommand({ ...at, Body: '{}' }));
    calls[`tag ${Bucket}`] = () => s3.send(new PutObjectTaggingCommand({ ...at, Tagging }));
    calls[`delete ${Bucket}`] = () => s3.send(new DeleteObjectCommand(at));
  }
  return calls;
}

const payload = (request: object) => ({ Payload: Buffer.from(JSON.stringify(request)) });
const descriptorOf = (team: string) => `/slipway/environments/e2e/${team}`;
const roleArn = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${ROLE}-${name}`;

async function callsOnServices(deployed: Deployed, as: Client): Promise<Calls> {
  const control = new GetFunctionConfigurationCommand({ FunctionName: CONTROL });
  const { Environment } = await deployed.client(LambdaClient).send(control);
  const { [ENV.runTable]: TableName, [ENV.runQueueUrl]: QueueUrl } = Environment?.Variables ?? {};
  const parameter = new GetParameterCommand({ Name: descriptorOf('default') });
  const { teamKeyArn } = JSON.parse((await deployed.client(SSMClient).send(parameter)).Parameter?.Value ?? '{}');
  const Key = { [RUN_TABLE.partitionKey]: { S: VICTIM }, [RUN_TABLE.sortKey]: { S: ITEM.run } };
  const [lambda, ssm, sagemaker, sts] = [as(LambdaClient), as(SSMClient), as(SageMakerClient), as(STSClient)];
  const [dynamodb, sqs, kms, iam] = [as(DynamoDBClient), as(SQSClient), as(KMSClient), as(IAMClient)];
  const invoke = (FunctionName: string) => () =>
    lambda.send(new InvokeCommand({ FunctionName, ...payload({ action: 'stop', runId: VICTIM }) }));
  const overwrite = (team: string) => () =>
    ssm.send(new PutParameterCommand({ Name: descriptorOf(team), Value: '{}', Overwrite: true }));
  const assume = (role: string) => () =>
    sts.send(new AssumeRoleCommand({ RoleArn: roleArn(role), RoleSessionName: 'attack' }));
  const TrainingJobName = `e2e-${VICTIM}-a002`;
  const ResourceArn = `arn:aws:sagemaker:us-west-2:${ACCOUNT}:training-job/${TrainingJobName}`;
  const message = { QueueUrl, MessageBody: '{}', MessageGroupId: 'a', MessageDeduplicationId: 'a' };
  const policy = { RoleName: `${ROLE}-other-researcher`, PolicyName: 'a', PolicyDocument: '{}' };
  return {
    'invoke their alias': invoke(`${CONTROL}:team-default`),
    'invoke control without an alias': invoke(CONTROL),
    'invoke reconcile': invoke('slipway-e2e-reconcile'),
    'change control': () => lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName: CONTROL, Timeout: 1 })),
    'read the table': () => dynamodb.send(new GetItemCommand({ TableName, Key })),
    'write the table': () => dynamodb.send(new PutItemCommand({ TableName, Item: Key })),
    'send a message': () => sqs.send(new SendMessageCommand(message)),
    'read their descriptor': () => ssm.send(parameter),
    'write their descriptor': overwrite('default'),
    'write its own descriptor': overwrite('other'),
    'use their key': () => kms.send(new GenerateDataKeyCommand({ KeyId: teamKeyArn, KeySpec: 'AES_256' })),
    'describe their job': () => sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })),
    'stop their job': () => sagemaker.send(new StopTrainingJobCommand({ TrainingJobName })),
    'tag their job': () => sagemaker.send(new AddTagsCommand({ ResourceArn, Tags: [{ Key: 'team', Value: 'other' }] })),
    'create a job with their role': () => sagemaker.send(new CreateTrainingJobCommand(JOB)),
    'be their researcher': assume('default-researcher'),
    'be their job': assume('default-execution'),
    'be the platform team': assume('platform-admin'),
    'widen its own role': () => iam.send(new PutRolePolicyCommand(policy)),
  };
}

const JOB: CreateTrainingJobCommandInput = {
  TrainingJobName: 'e2e-attack',
  RoleArn: roleArn('default-execution'),
  AlgorithmSpecification: { TrainingImage: 'image', TrainingInputMode: 'File' },
  OutputDataConfig: { S3OutputPath: `s3://${CHECKPOINTS}/runs/default/` },
  ResourceConfig: { InstanceType: 'ml.m5.xlarge', InstanceCount: 1, VolumeSizeInGB: 30 },
  StoppingCondition: { MaxRuntimeInSeconds: 600 },
};

/** Every object of the other team, with its content's tag. */
async function objectsOf(deployed: Deployed): Promise<string[]> {
  const s3 = deployed.client(S3Client);
  const all = THEIRS.map(async ([Bucket, Prefix]) => {
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix }));
    return Contents.map(({ Key, ETag }) => `${Bucket}/${Key} ${ETag}`);
  });
  return (await Promise.all(all)).flat();
}

/** Registers the tests of a deployed environment in which a run `disturbed` of team `default` is completed. */
export function attacksOfATeam(environment: () => Deployed): void {
  let attacker: Record<string, string>;
  let before: { objects: string[]; status: unknown };
  const status = async () => {
    const { runId, state, desiredState, reason, spendUsd } = JSON.parse(
      await environment().slipway('status', VICTIM, '--json'),
    );
    return { runId, state, desiredState, reason, spendUsd };
  };
  const as: Client = (Client) => environment().client(Client, attacker);

  beforeAll(async () => {
    attacker = await assumed(environment(), `${ROLE}-other-researcher`);
    before = { objects: await objectsOf(environment()), status: await status() };
    expect(before.objects.length).toBeGreaterThan(5);
  });

  test('past the launcher, every call on what belongs to the other team is denied', async () => {
    const calls = { ...callsOnFiles(as), ...(await callsOnServices(environment(), as)) };
    const outcomes = await Promise.all(
      Object.entries(calls).map(async ([name, call]) => {
        const error = await call().then(
          () => 'it went through',
          (failed: Error) => `${failed.name}: ${failed.message}`,
        );
        return DENIED.test(error) ? [] : [`${name}: ${error}`];
      }),
    );
    expect(outcomes.flat()).toEqual([]);
  });

  test('through the launcher, no action finds a run of the other team', async () => {
    const requests = [
      ...['status', 'events', 'stop', 'resume', 'release', 'delete'].map((action) => ({ action, runId: VICTIM })),
      { action: 'delete', runId: VICTIM, confirm: true },
      { action: 'logs', runId: VICTIM, attempt: 1 },
      { action: 'note', runId: VICTIM, text: 'mine' },
      { action: 'shell', runId: VICTIM, host: 1 },
      { action: 'start', runId: VICTIM, confirm: true },
    ];
    const through: unknown[] = [];
    for (const request of requests) {
      const { Payload } = await as(LambdaClient).send(
        new InvokeCommand({ FunctionName: `${CONTROL}:team-other`, ...payload(request) }),
      );
      const text = Buffer.from(Payload ?? []).toString();
      const answer = JSON.parse(text) as { ok?: boolean; events?: unknown[] };
      const isNothing = request.action === 'events' && answer.events?.length === 0;
      if (answer.ok !== false && !isNothing) through.push([request, text]);
    }
    expect(through).toEqual([]);
  });

  const launch = (text: string, id: string, ...more: string[]) => {
    const file = path.join(environment().folder, 'runs/attack.yaml');
    writeFileSync(file, text);
    return environment().tryCall(
      process.execPath,
      [
        'dist/cli/slipway.mjs',
        'launch',
        file,
        '--yes',
        '--wait',
        '--json',
        '--run-id',
        id,
        '--environment',
        'e2e/other',
        '--region',
        'us-west-2',
        ...more,
      ],
      attacker,
    );
  };

  test('no run file of another team names its places, and its run id cannot be taken', async () => {
    writeFileSync(path.join(environment().folder, 'runs/src/attack.py'), JOB_PY);
    const taken = await launch(RUN, VICTIM);
    expect(taken.code, taken.stderr).not.toBe(0);
    expect(taken.stderr).not.toContain('team default');
    const through: unknown[] = [];
    for (const [what, lines] of Object.entries(PLACES)) {
      const runFile = `${RUN}${lines}\n`;
      const local = await launch(runFile, 'attack-place');
      // Without the command line, whose rules an attacker would not ask.
      const request = { action: 'start', runFile, clientRequestId: 'a', runId: 'attack-place' };
      const { Payload } = await as(LambdaClient).send(
        new InvokeCommand({ FunctionName: `${CONTROL}:team-other`, ...payload(request) }),
      );
      const answer = JSON.parse(Buffer.from(Payload ?? []).toString());
      if (local.code === 0 || answer.ok !== false) through.push([what, local.code, answer]);
    }
    expect(through).toEqual([]);
  });

  test('code of a job reads and writes nothing of the other team', async () => {
    const done = await launch(RUN, 'attack-job');
    expect(done.code, done.stderr).toBe(0);
    const logs = await environment().tryCall(
      process.execPath,
      ['dist/cli/slipway.mjs', 'logs', 'attack-job', '--environment', 'e2e/other', '--region', 'us-west-2'],
      attacker,
    );
    expect(/slipway-attack (\[.*\])/.exec(logs.stdout)?.[1]).toBe('[]');
  });

  test('a start from a run of the other team is refused as if it did not exist', async () => {
    const { runs } = JSON.parse(await environment().slipway('list', '--json')) as { runs: { runId: string }[] };
    const theirs = runs.map(({ runId }) => runId).find((runId) => /-\d{12}$/.test(runId));
    const places = `mode: direct, committedMarker: "step-*/COMMITTED.json", startFrom: ${theirs}`;
    const started = await launch(`${RUN}checkpoints: { ${places} }\n`, 'attack-start');
    expect(started.code).not.toBe(0);
    expect(started.stdout).toContain(`checkpoints.startFrom: must be a run of team other, got ${theirs}`);
  });

  test('nothing of the other team has changed', async () => {
    expect(await objectsOf(environment())).toEqual(before.objects);
    expect(await status()).toEqual(before.status);
  });
}
