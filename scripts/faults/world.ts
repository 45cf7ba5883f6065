import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { StatusAnswer } from '../../lib/core/contracts/control';
import { TICK } from '../../lib/core/contracts/launcher';
import { adminOf, type FaultSpec, type Sandbox, startSandbox } from '../../lib/sandbox/testing';

const run = promisify(execFile);
export const ROOT = path.resolve(__dirname, '../..');
export const PYTHON = path.join(ROOT, '.slipway/python/bin/python');
export const REGION = 'us-west-2';
const ENVIRONMENT = `name: faults\nregions: { ${REGION}: {} }\nstorage: { retain: false }\nquotas: { enforce: "off" }\n`;
/** Until a wait counts as failed: on a busy machine everything takes long, and a wait that is over costs nothing. */
const PATIENCE_SECONDS = 400;
/** Room for several runs at once: m5.xlarge, and the totals. */
const QUOTAS = { 'L-CCE2AFA6': 40, 'L-00C91CB5': 40, 'L-622CFD70': 40 };

export type Status = StatusAnswer & { timeline: { at: string; what: string; text: string }[] };

/** One environment in the sandbox, reached as people and the service reach it: command line, Lambda, the fault plan's HTTP calls. */
export class World {
  readonly bucket = `slipway-faults-000000000000-${REGION}-checkpoints`;
  readonly dataBucket = `slipway-faults-000000000000-${REGION}-data`;
  readonly artifactBucket = `slipway-faults-000000000000-${REGION}-artifacts`;
  private constructor(
    readonly sandbox: Sandbox,
    readonly folder: string,
    readonly sagemaker: SageMakerClient,
    readonly s3: S3Client,
    readonly cloudformation: CloudFormationClient,
    readonly lambda: LambdaClient,
    private readonly dynamodb: DynamoDBClient,
  ) {}

  static async open(print: (text: string) => void): Promise<World> {
    const folder = mkdtempSync(path.join(tmpdir(), 'slipway-faults-'));
    const sandbox = await startSandbox({
      stateDir: path.join(folder, 'state'),
      venvDir: path.join(ROOT, '.slipway/venv'),
      pythonBin: PYTHON,
      region: REGION,
      quotas: QUOTAS,
      time: { stopGraceSeconds: 5 },
      progress: print,
    });
    const credentials = {
      accessKeyId: sandbox.env.AWS_ACCESS_KEY_ID ?? '',
      secretAccessKey: sandbox.env.AWS_SECRET_ACCESS_KEY ?? '',
    };
    const aws = { region: REGION, credentials, endpoint: sandbox.endpoints.aws };
    const world = new World(
      sandbox,
      folder,
      new SageMakerClient({ ...aws, endpoint: sandbox.endpoints.sagemaker }),
      new S3Client({ ...aws, forcePathStyle: true }),
      new CloudFormationClient(aws),
      new LambdaClient(aws),
      new DynamoDBClient(aws),
    );
    await world.deploy(print);
    return world;
  }

  private async deploy(print: (text: string) => void): Promise<void> {
    const file = path.join(this.folder, 'faults.yaml');
    writeFileSync(file, ENVIRONMENT);
    mkdirSync(path.join(this.folder, 'runs'));
    cpSync(path.join(__dirname, 'script'), path.join(this.folder, 'runs/script'), { recursive: true });
    const assembly = path.join(this.folder, 'cdk.out');
    const cdk = (...args: string[]) => this.call(path.join(ROOT, 'node_modules/.bin/cdk'), args);
    print('cdk bootstrap, synth, deploy');
    await cdk('bootstrap', `aws://000000000000/${REGION}`, '--app', '');
    await cdk('synth', '--quiet', '--output', assembly, '-c', `environment=${file}`);
    await cdk('deploy', '--all', '--app', assembly, '--method=direct', '--require-approval', 'never');
  }

  private async call(program: string, args: readonly string[]): Promise<string> {
    const env = { PATH: process.env.PATH ?? '', HOME: this.folder, NODE_NO_WARNINGS: '1', ...this.sandbox.env };
    try {
      return (await run(program, args, { env, maxBuffer: 1 << 26, cwd: ROOT })).stdout;
    } catch (error) {
      // With --json a refusal says its reasons on stdout. Its exit code stays on the error.
      const { message, stdout } = error as Error & { stdout?: string };
      throw Object.assign(error as Error, { message: `${message}${stdout?.slice(0, 800) ?? ''}` });
    }
  }

  slipway(...args: string[]): Promise<string> {
    const cli = path.join(ROOT, 'dist/cli/slipway.mjs');
    return this.call(process.execPath, [cli, ...args, '--environment', 'faults', '--region', REGION]);
  }

  /** A run of scripts/faults/script; the run id is `name`. */
  async launch(name: string, options: { env?: Record<string, string>; more?: string } = {}): Promise<void> {
    await this.launchFile(name, [
      'code: { source: ./script, entryPoint: train.py }',
      'compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }',
      'distribution: { launcher: script }',
      'checkpoints: { mode: managed, committedMarker: "step-*/DONE" }',
      `environmentVariables: ${JSON.stringify(options.env ?? {})}`,
      options.more ?? 'limits: { maxRuntimeSeconds: 3600, maxAttempts: 4, retryInternalErrors: 1 }',
    ]);
  }

  /** Any run file of that name; the run id is the name unless given. */
  async launchFile(name: string, lines: readonly string[], runId = name): Promise<void> {
    const file = path.join(this.folder, `runs/${name}.yaml`);
    writeFileSync(file, `${[`name: ${name}`, ...lines].join('\n')}\n`);
    await this.slipway('launch', file, '--yes', '--json', '--run-id', runId);
  }

  /** Plans a fault by the sandbox's HTTP call. */
  async fault(spec: FaultSpec): Promise<{ id: string }> {
    return adminOf(this.sandbox).fault(spec);
  }

  async hits(id: string): Promise<number> {
    return (await adminOf(this.sandbox).faults()).find((f) => f.id === id)?.hits.length ?? 0;
  }

  /** What the schedule does every five minutes. */
  tick(): Promise<unknown> {
    return this.invoke(TICK);
  }

  invoke(payload: unknown): Promise<unknown> {
    const FunctionName = 'slipway-faults-reconcile';
    return this.lambda.send(new InvokeCommand({ FunctionName, Payload: JSON.stringify(payload) }));
  }

  async status(name: string): Promise<Status> {
    const payload = { action: 'status', runId: name, timeline: true };
    const command = new InvokeCommand({
      FunctionName: 'slipway-faults-control',
      Qualifier: 'team-default',
      Payload: JSON.stringify(payload),
    });
    const { Payload } = await this.lambda.send(command);
    return JSON.parse(Buffer.from(Payload ?? []).toString()) as Status;
  }

  /** Waits until the run looks as wanted. Ticks now and then, so that a lost event costs seconds here and not minutes. */
  async until(name: string, wanted: (status: Status) => boolean, seconds = PATIENCE_SECONDS): Promise<Status> {
    const end = Date.now() + seconds * 1000;
    let status = await this.status(name);
    for (let turn = 1; !wanted(status) && Date.now() < end; turn++) {
      await sleep(500);
      if (turn % 8 === 0) await this.tick();
      status = await this.status(name);
    }
    return status;
  }

  /** Steps of a run whose checkpoints are in the bucket with their marker. The status learns of them now and then only. */
  async committed(name: string): Promise<number[]> {
    const Prefix = `runs/default/${name}/`;
    const { Contents = [] } = await this.s3.send(new ListObjectsV2Command({ Bucket: this.bucket, Prefix }));
    return Contents.flatMap(({ Key }) => /step-(\d+)\/(?:DONE|COMMITTED\.json)$/.exec(Key ?? '')?.[1] ?? []).map(
      Number,
    );
  }

  /** Waits until a run has committed a step, or a later one. */
  async untilCommitted(name: string, step: number): Promise<void> {
    const end = Date.now() + PATIENCE_SECONDS * 1000;
    while (Math.max(0, ...(await this.committed(name))) < step) {
      if (Date.now() > end) throw new Error(`${name}: must commit step ${step} in ${PATIENCE_SECONDS} s`);
      await sleep(500);
    }
  }

  over(name: string, seconds = PATIENCE_SECONDS): Promise<Status> {
    return this.until(name, (s) => ['completed', 'failed', 'stopped'].includes(s.state), seconds);
  }

  /** Notices of a run that wait to be published. */
  async outbox(name: string): Promise<number> {
    const Key = { runId: { S: name }, item: { S: 'RUN' } };
    const { Item } = await this.dynamodb.send(
      new GetItemCommand({ TableName: 'slipway-faults-runs', Key, ConsistentRead: true }),
    );
    return (JSON.parse(Item?.document?.S ?? '{"outbox":[]}') as { outbox: unknown[] }).outbox.length;
  }

  removeFault(id: string): Promise<void> {
    return adminOf(this.sandbox).removeFault(id);
  }

  /** Names of all training jobs that this run ever had. */
  async jobs(name: string): Promise<string[]> {
    const { TrainingJobSummaries = [] } = await this.sagemaker.send(
      new ListTrainingJobsCommand({ NameContains: `faults-${name}-a`, MaxResults: 100 }),
    );
    return TrainingJobSummaries.map((j) => j.TrainingJobName ?? '').sort();
  }

  async jobStatuses(name: string): Promise<string[]> {
    const { TrainingJobSummaries = [] } = await this.sagemaker.send(
      new ListTrainingJobsCommand({ NameContains: `faults-${name}-a`, MaxResults: 100 }),
    );
    return TrainingJobSummaries.map((j) => j.TrainingJobStatus ?? '');
  }

  async close(): Promise<void> {
    await this.sandbox.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
