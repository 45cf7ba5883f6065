// An environment on the embedded AWS whose clock the test sets: the product as it is deployed, and jobs that end as they are told.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DeleteItemCommand, DynamoDBClient, paginateScan } from '@aws-sdk/client-dynamodb';
import { DisableRuleCommand, EventBridgeClient, ListRulesCommand } from '@aws-sdk/client-eventbridge';
import { CreateRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import { GetFunctionConfigurationCommand, InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  DeleteTrainingJobCommand,
  paginateListTrainingJobs,
  SageMakerClient,
  type TrainingJobSummary,
} from '@aws-sdk/client-sagemaker';
import { GetQueueAttributesCommand, PurgeQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { vi } from 'vitest';
import { type Descriptor, descriptorSchema } from '../../../lib/core/config/descriptor';
import { controlAliasName, descriptorParameter, ENV, TICK } from '../../../lib/core/contracts/launcher';
import { processesMarked, sendSignal } from '../../../lib/sandbox/processes';
import { adminOf, type SandboxAdmin } from '../../../lib/sandbox/testing';
import { isLive } from '../../../tools/simulation/job/job';
import { ROOT, type TestSandbox, testSandbox } from '../../e2e/support/sandbox';

const REGION = 'us-west-2';
const CDK = path.join(ROOT, 'node_modules/.bin/cdk');
const CREDENTIALS = { accessKeyId: '000000000000', secretAccessKey: 'test' };
/** Looks at queue and jobs that must be alike before the control plane counts as idle, and the real milliseconds between them. */
const QUIET_OBSERVATIONS = 3;
const QUIET_MS = 30;

const realNow = Date.now;

export class Stage {
  readonly admin: SandboxAdmin;
  readonly descriptors = new Map<string, Descriptor>();
  readonly sagemaker: SageMakerClient;
  readonly s3: S3Client;
  readonly dynamo: DynamoDBClient;
  private readonly lambda: LambdaClient;
  private readonly sqs: SQSClient;
  /** Role of jobs of others in the account. */
  outsideRoleArn = '';
  private queueUrl = '';
  private timeMs = 0;

  private constructor(
    readonly environment: string,
    private readonly sandbox: TestSandbox,
    private readonly ordersFolder: string,
    private readonly clockFile: string,
  ) {
    const client = { region: REGION, credentials: CREDENTIALS, endpoint: sandbox.endpoints.aws };
    this.admin = adminOf(sandbox);
    this.sagemaker = new SageMakerClient({ ...client, endpoint: sandbox.endpoints.sagemaker });
    this.s3 = new S3Client({ ...client, forcePathStyle: true });
    this.dynamo = new DynamoDBClient(client);
    this.lambda = new LambdaClient(client);
    this.sqs = new SQSClient(client);
  }

  /** @param environment name of the environment. @param text its file */
  static async open(environment: string, text: string, teams: readonly string[], folder: string): Promise<Stage> {
    const clockFile = path.join(folder, 'clock');
    const orders = path.join(folder, 'orders');
    mkdirSync(orders, { recursive: true });
    writeFileSync(clockFile, '0');
    const clock = path.join(__dirname, 'clock');
    const sandbox = await testSandbox({
      // A stopped job is there for as long as the test wants.
      time: { stopGraceSeconds: 3600, startingSeconds: 0, downloadingSeconds: 0 },
      ministackEnv: {
        SLIPWAY_TEST_CLOCK: clockFile,
        PYTHONPATH: clock,
        NODE_OPTIONS: `--require=${path.join(clock, 'functions.cjs')}`,
      },
    });
    const stage = new Stage(environment, sandbox, orders, clockFile);
    try {
      await stage.deploy(text, teams);
      return stage;
    } catch (error) {
      await sandbox.end();
      throw error;
    }
  }

  private async deploy(text: string, teams: readonly string[]): Promise<void> {
    const { sandbox, environment } = this;
    const file = path.join(sandbox.folder, `${environment}.yaml`);
    writeFileSync(file, text);
    const assembly = path.join(sandbox.folder, 'cdk.out');
    await Promise.all([
      sandbox.call(CDK, ['bootstrap', `aws://000000000000/${REGION}`, '--app', '']),
      sandbox.call(CDK, ['synth', '--quiet', '--output', assembly, '-c', `environment=${file}`]),
    ]);
    const how = ['--method=direct', '--require-approval', 'never'];
    await sandbox.call(CDK, ['deploy', '--all', '--app', assembly, ...how]);
    for (const team of teams) this.descriptors.set(team, await this.descriptorOf(team));
    const FunctionName = `slipway-${environment}-reconcile`;
    const { Environment } = await this.lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
    this.queueUrl = Environment?.Variables?.[ENV.runQueueUrl] ?? '';
    await this.stopSchedules();
    await this.makeOutsideRole();
    const [first] = this.descriptors.values();
    if (!first) throw new Error('the environment must have a team');
    const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/(.*)$/.exec(first.driver?.uri ?? '') ?? [];
    await this.put(bucket, `${prefix}launch.sh`, this.script);
    await this.put(first.dataBucket, 'tokens/part-0', 'tokens');
  }

  private async descriptorOf(team: string): Promise<Descriptor> {
    const client = { region: REGION, credentials: CREDENTIALS, endpoint: this.sandbox.endpoints.aws };
    const Name = descriptorParameter(this.environment, team);
    const { Parameter } = await new SSMClient(client).send(new GetParameterCommand({ Name }));
    return descriptorSchema.parse(JSON.parse(Parameter?.Value ?? ''));
  }

  /** The environment's own roles are for its own jobs. */
  private async makeOutsideRole(): Promise<void> {
    const client = { region: REGION, credentials: CREDENTIALS, endpoint: this.sandbox.endpoints.aws };
    const trust = { Effect: 'Allow', Principal: { Service: 'sagemaker.amazonaws.com' }, Action: 'sts:AssumeRole' };
    const AssumeRolePolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: [trust] });
    const RoleName = 'outside';
    const { Role } = await new IAMClient(client).send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument }));
    this.outsideRoleArn = Role?.Arn ?? '';
  }

  private async stopSchedules(): Promise<void> {
    const client = { region: REGION, credentials: CREDENTIALS, endpoint: this.sandbox.endpoints.aws };
    const events = new EventBridgeClient(client);
    const { Rules = [] } = await events.send(new ListRulesCommand({}));
    const scheduled = Rules.filter((rule) => rule.ScheduleExpression);
    for (const { Name } of scheduled) await events.send(new DisableRuleCommand({ Name }));
  }

  /** Puts every clock to this time: epoch milliseconds. It never goes back within a scenario. */
  setTime(ms: number): void {
    this.timeMs = ms;
    vi.setSystemTime(ms);
    const temporary = `${this.clockFile}.new`;
    writeFileSync(temporary, String(ms - realNow()));
    renameSync(temporary, this.clockFile);
  }

  /** Command of a job that only waits until it is told to end: an argument has at most 256 characters. */
  get waiting(): string {
    return `while [ ! -e "${this.ordersFolder}/$TRAINING_JOB_NAME" ]; do sleep 1; done`;
  }

  /** What every instance of the product's jobs runs. */
  private get script(): string {
    return readFileSync(path.join(__dirname, 'job.sh'), 'utf8').replace('@FOLDER@', this.ordersFolder);
  }

  get now(): number {
    return this.timeMs;
  }

  async put(Bucket: string, Key: string, Body: string): Promise<void> {
    await this.s3.send(new PutObjectCommand({ Bucket, Key, Body }));
  }

  /** An object that was written at this time, which may lie in the past. */
  async putAt(ms: number, { bucket, key, body }: { bucket: string; key: string; body: string }): Promise<void> {
    const { now } = this;
    this.setTime(ms);
    await this.put(bucket, key, body);
    this.setTime(now);
  }

  async read(Bucket: string, Key: string): Promise<string> {
    const { Body } = await this.s3.send(new GetObjectCommand({ Bucket, Key }));
    return (await Body?.transformToString()) ?? '';
  }

  async remove(Bucket: string, Key: string): Promise<void> {
    await this.s3.send(new DeleteObjectCommand({ Bucket, Key }));
  }

  /** Keys of a bucket. */
  async keys(Bucket: string, Prefix: string): Promise<string[]> {
    const { Contents = [] } = await this.s3.send(new ListObjectsV2Command({ Bucket, Prefix }));
    return Contents.map(({ Key = '' }) => Key);
  }

  /** The team's alias of control, as the command line calls it. */
  async control<T>(team: string, payload: object): Promise<T> {
    const command = new InvokeCommand({
      FunctionName: `slipway-${this.environment}-control`,
      Qualifier: controlAliasName(team),
      Payload: JSON.stringify(payload),
    });
    const { Payload, FunctionError } = await this.lambda.send(command);
    const text = Buffer.from(Payload ?? []).toString();
    if (FunctionError) throw new Error(`control: ${text}`);
    return JSON.parse(text) as T;
  }

  /** What the schedule does every five minutes. */
  async tick(): Promise<void> {
    const FunctionName = `slipway-${this.environment}-reconcile`;
    const { FunctionError, Payload } = await this.lambda.send(
      new InvokeCommand({ FunctionName, Payload: JSON.stringify(TICK) }),
    );
    if (FunctionError) throw new Error(`reconcile: ${Buffer.from(Payload ?? []).toString()}`);
  }

  /** Tells all instances of a job how to end. */
  order(jobName: string, code: number, failure = ''): void {
    const file = path.join(this.ordersFolder, jobName);
    writeFileSync(`${file}.new`, `${code}\n${failure}`);
    renameSync(`${file}.new`, file);
  }

  /** Its next start waits for an order of its own. */
  takeBackOrder(jobName: string): void {
    rmSync(path.join(this.ordersFolder, jobName));
  }

  async jobs(): Promise<TrainingJobSummary[]> {
    const found: TrainingJobSummary[] = [];
    for await (const page of paginateListTrainingJobs({ client: this.sagemaker, pageSize: 100 }, {}))
      found.push(...(page.TrainingJobSummaries ?? []));
    return found;
  }

  /** Until no message waits or is handled, and no job changes. */
  async settle(): Promise<void> {
    let quiet = 0;
    for (let before = ''; quiet < QUIET_OBSERVATIONS; ) {
      await this.pause();
      const waiting = await this.messages();
      const jobs = (await this.jobs()).map(
        (job) => `${job.TrainingJobName} ${job.TrainingJobStatus} ${job.SecondaryStatus}`,
      );
      const now = jobs.join('\n');
      quiet = waiting === 0 && now === before ? quiet + 1 : 0;
      before = now;
    }
  }

  /** A real moment. */
  pause(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }

  private async messages(): Promise<number> {
    const AttributeNames = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const;
    const { Attributes = {} } = await this.sqs.send(
      new GetQueueAttributesCommand({ QueueUrl: this.queueUrl, AttributeNames: [...AttributeNames] }),
    );
    return AttributeNames.reduce((sum, name) => sum + Number(Attributes[name] ?? 0), 0);
  }

  /** Forgets everything of the scenario before: runs, objects, jobs, messages, faults, and what functions keep in memory. */
  async clear(): Promise<void> {
    await this.admin.clearFaults();
    for (let live = await this.live(); live.length > 0; live = await this.live()) {
      for (const job of live) this.order(job, 0);
      await this.pause();
    }
    await this.settle();
    await this.sqs.send(new PurgeQueueCommand({ QueueUrl: this.queueUrl }));
    for (const { TrainingJobName } of await this.jobs())
      await this.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName }));
    const TableName = `slipway-${this.environment}-runs`;
    for await (const { Items = [] } of paginateScan({ client: this.dynamo }, { TableName }))
      for (const { runId = { S: '' }, item = { S: '' } } of Items)
        await this.dynamo.send(new DeleteItemCommand({ TableName, Key: { runId, item } }));
    const buckets = [...this.descriptors.values()].flatMap((d) => [d.artifactBucket, d.checkpointBucket]);
    for (const bucket of new Set(buckets))
      for (const key of await this.keys(bucket, 'runs/')) await this.remove(bucket, key);
    this.renewFunctions();
    rmSync(this.ordersFolder, { recursive: true, force: true });
    mkdirSync(this.ordersFolder, { recursive: true });
  }

  private async live(): Promise<string[]> {
    const jobs = await this.jobs();
    return jobs
      .filter((job) => isLive({ status: job.TrainingJobStatus ?? '', deletedAt: undefined }))
      .map((job) => job.TrainingJobName ?? '');
  }

  /** What functions keep in memory is gone: the next invocation is a cold start. */
  private renewFunctions(): void {
    for (const { pid, command } of processesMarked('SLIPWAY_TEST_CLOCK', this.clockFile))
      if (command.includes('_worker.js')) sendSignal(pid, 'SIGKILL');
  }

  end(): Promise<void> {
    return this.sandbox.end();
  }
}
