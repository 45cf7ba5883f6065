// Calls of people and jobs under their own roles, with IAM enforced. A statement that is taken away makes the path fail where that role
// needs it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  CloudWatchLogsClient,
  DescribeLogStreamsCommand,
  FilterLogEventsCommand,
  GetLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  CreateModelPackageCommand,
  DescribeModelPackageCommand,
  DescribeTrainingJobCommand,
  SageMakerClient,
  StopTrainingJobCommand,
  UpdateTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { beforeAll, expect, test } from 'vitest';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import { TICK } from '../../../lib/core/contracts/launcher';
import { adminOf, eventually } from '../../../lib/sandbox/testing';
import type { Deployed } from '../support/deployed';
import { ROOT } from '../support/sandbox';
import { assumed, ROLE, roleOf, without } from './credentials';

const DATA = 'slipway-e2e-000000000000-us-west-2-data';
const CHECKPOINTS = 'slipway-e2e-000000000000-us-west-2-checkpoints';
const ARTIFACTS = 'slipway-e2e-000000000000-us-west-2-artifacts';
const DESCRIPTOR = new GetParameterCommand({ Name: '/slipway/environments/e2e/default' });
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');
const run = (name: string) => path.join(ROOT, 'runs', name);
/** Options `--set` for assignments. */
export const set = (...options: string[]) => options.flatMap((option) => ['--set', option]);
const STOPPED = `name: stopped
code: { source: ./src, entryPoint: stopped.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1, keepAliveSeconds: 3600 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;
const STOPPED_PY = `import signal, sys, time
def leave(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("waits", flush=True)
while True:
    time.sleep(0.1)
`;
/** Two ranks, and the second dies with its instance. */
const disturbed = set(
  ...['training.steps=14', 'training.microBatchSize=1', 'training.globalBatchSize=2'],
  'code.arguments.save-every-steps=6',
  // A save must be whole before the instance dies.
  ...['code.arguments.minimum-step-seconds=0.3', 'code.arguments.export-weights=true'],
);

/** Raw text for the tokenise step, put there by the account's owner: a part of Python's library. */
export async function uploadText(deployed: Deployed): Promise<void> {
  const where = ['-c', 'import os; print(os.path.dirname(os.__file__))'];
  const folder = execFileSync('python3', where, { encoding: 'utf8' }).trim();
  const files = readdirSync(folder).filter((name) => name.endsWith('.py'));
  const s3 = deployed.client(S3Client);
  for (const name of files.slice(0, 20)) {
    const Body = readFileSync(path.join(folder, name));
    await s3.send(new PutObjectCommand({ Bucket: DATA, Key: `demo-raw/${name}`, Body }));
  }
}

/** Until a job has written a line that holds `text`. */
async function untilLogged(deployed: Deployed, job: string, text: string): Promise<void> {
  const logs = deployed.client(CloudWatchLogsClient);
  const find = new FilterLogEventsCommand({ logGroupName: '/aws/sagemaker/TrainingJobs', logStreamNamePrefix: job });
  const isThere = async () => (await logs.send(find)).events?.some(({ message }) => message?.includes(text)) ?? false;
  await eventually(isThere, { timeoutSeconds: 120, intervalSeconds: 0.3, what: `"${text}" in the log of ${job}` });
}

/** Losses of every step in the logs of a run, as often as the step was taken. */
function lossesIn(logs: string): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const line of logs.trim().split('\n')) {
    const { message } = JSON.parse(line) as { message: string };
    if (!message.startsWith('slipway {"event":"step"')) continue;
    const { step, loss } = JSON.parse(message.slice(8)) as { step: number; loss: number };
    found.set(step, [...(found.get(step) ?? []), loss]);
  }
  return found;
}

/** Registers the tests of a deployed environment with IAM enforced. */
export function callsOfRoles(environment: () => Deployed): void {
  let researcher: Record<string, string>;
  beforeAll(async () => {
    researcher = await assumed(environment(), `${ROLE}-default-researcher`);
    await uploadText(environment());
  });

  const launch = (file: string, id: string, ...more: string[]) =>
    environment().slipwayAs(researcher, 'launch', run(file), '--yes', '--wait', '--json', '--run-id', id, ...more);

  test('data preparation and preflight go through under the roles themselves', async () => {
    const tokens = await launch('data/demo-tokenize.yaml', 'tokens');
    expect(tokens.code, tokens.stderr).toBe(0);
    const preflight = await environment().slipwayAs(researcher, 'preflight', run('builtin/demo.yaml'), '--json');
    expect(preflight.code, preflight.stdout + preflight.stderr).toBe(0);
  });

  // test/long/elastic.test.ts holds a whole run against one that nothing disturbed.
  test('a run resumes as a second attempt that repeats the losses of the steps after its checkpoint, bit for bit', async () => {
    const fault = { kind: 'instance-killed', jobName: 'e2e-disturbed-*', host: 2, step: 11, as: 'container' } as const;
    await adminOf(environment()).fault(fault);
    const done = await launch('builtin/demo.yaml', 'disturbed', ...disturbed);
    expect(done.code, done.stderr).toBe(0);
    const status = JSON.parse(done.stdout) as { attempts: unknown[] };
    expect(status).toMatchObject({ state: 'completed', committedStep: 14 });
    expect(status.attempts).toMatchObject([{ status: 'Failed' }, { status: 'Completed', firstStep: 7, lastStep: 14 }]);
    const logs = await environment().slipwayAs(researcher, 'logs', 'disturbed', '--json');
    expect(logs.code, logs.stderr).toBe(0);
    const found = lossesIn(logs.stdout);
    expect([...found.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 14 }, (_, step) => step + 1));
    expect([...found.values()].filter((all) => new Set(all).size > 1)).toEqual([]);
    // The lines of the last steps before the end may be lost with the instance.
    expect([7, 8, 9].map((step) => found.get(step)?.length)).toEqual([2, 2, 2]);
  });

  test('the page of a team is published at the tick, and opens with the link of its researchers', async () => {
    const lambda = environment().client(LambdaClient);
    const tick = { FunctionName: 'slipway-e2e-reconcile', Payload: JSON.stringify(TICK) };
    expect((await lambda.send(new InvokeCommand(tick))).FunctionError).toBeUndefined();
    const linked = await environment().slipwayAs(researcher, 'team', 'e2e', '--link', '--team', 'default', '--json');
    expect(linked.code, linked.stderr).toBe(0);
    const { links } = JSON.parse(linked.stdout) as { links: { url: string }[] };
    const read = 'fetch(process.argv[1]).then((page) => page.text()).then((text) => process.stdout.write(text))';
    expect(await environment().call(process.execPath, ['-e', read, links[0]?.url ?? ''])).toContain('disturbed');
  });

  test('logs and jobs of a team are read by its researchers alone, through the launcher and past it', async () => {
    const own = await environment().slipwayAs(researcher, 'logs', 'disturbed');
    expect(own.code, own.stderr).toBe(0);
    expect(own.stdout).toContain('slipway {');
    const report = await environment().slipwayAs(researcher, 'report', 'disturbed', '--json');
    expect(report.code, report.stderr).toBe(0);
    const other = await assumed(environment(), `${ROLE}-other-researcher`);
    const through = await environment().tryCall(
      process.execPath,
      [CLI, 'logs', 'disturbed', '--environment', 'e2e/other', '--region', 'us-west-2'],
      other,
    );
    expect(through.code, through.stdout).toBe(1);
    expect(through.stderr).toContain('must be a run of team other');
    const logs = environment().client(CloudWatchLogsClient, other);
    const logGroupName = '/aws/sagemaker/TrainingJobs';
    const logStreamName = 'e2e-disturbed-a002/algo-1';
    const describeAs = (credentials: Record<string, string>) =>
      environment()
        .client(SageMakerClient, credentials)
        .send(new DescribeTrainingJobCommand({ TrainingJobName: 'e2e-disturbed-a002' }));
    const refused = { name: expect.stringMatching(/^AccessDenied/) };
    await expect(logs.send(new FilterLogEventsCommand({ logGroupName }))).rejects.toMatchObject(refused);
    await expect(logs.send(new DescribeLogStreamsCommand({ logGroupName }))).rejects.toMatchObject(refused);
    await expect(logs.send(new GetLogEventsCommand({ logGroupName, logStreamName }))).rejects.toMatchObject(refused);
    await expect(describeAs(other)).rejects.toMatchObject(refused);
    expect(await describeAs(researcher)).toMatchObject({ TrainingJobStatus: 'Completed' });
  });

  test('a researcher publishes the weights of a run with their card, and registers a version that others approve', async () => {
    const uri = `s3://${DATA}/teams/default/models/disturbed/`;
    const registry = ['--registry', 'e2e-default-tiny', '--inference-image', 'registry/serve:1'];
    const published = await environment().slipwayAs(researcher, 'publish', 'disturbed', ...registry, '--json');
    expect(published.code, published.stderr).toBe(0);
    const document = JSON.parse(published.stdout) as { modelPackageArn: string };
    expect(ANSWERS.published.parse(document)).toMatchObject({ uri, card: `${uri}README.md` });
    const lineage = await environment().slipwayAs(researcher, 'status', uri, '--lineage', '--json');
    expect(lineage.code, lineage.stderr).toBe(0);
    const found = ANSWERS.lineage.parse(JSON.parse(lineage.stdout));
    expect(found).toMatchObject({ checkpoint: { step: 14 }, notes: [] });
    // Attempt 2 went on from the checkpoint that attempt 1 had left.
    expect(found.runs).toMatchObject([{ runId: 'disturbed', parents: [{ by: 'attempt 2', step: 6 }] }]);
    expect(found.runs[0]?.data.digest).toMatch(/^[0-9a-f]{64}$/);
    const sagemaker = environment().client(SageMakerClient, researcher);
    const approved = new CreateModelPackageCommand({
      ModelPackageGroupName: 'e2e-default-tiny',
      ModelApprovalStatus: 'Approved',
    });
    await expect(sagemaker.send(approved)).rejects.toMatchObject({ name: 'AccessDeniedException' });
    const elsewhere = await environment().slipwayAs(
      ...([researcher, 'publish', 'disturbed', '--registry', 'e2e-other-tiny'] as const),
      ...['--inference-image', 'registry/serve:1'],
    );
    expect(elsewhere).toMatchObject({ code: 3, stderr: expect.stringContaining('must be permitted') });
    const describe = new DescribeModelPackageCommand({ ModelPackageName: document.modelPackageArn });
    const version = await environment().client(SageMakerClient).send(describe);
    expect(version).toMatchObject({ ModelPackageVersion: 1, ModelApprovalStatus: 'PendingManualApproval' });
    expect(version.ModelPackageDescription).toContain(`${uri}README.md`);
    const card = new GetObjectCommand({ Bucket: DATA, Key: 'teams/default/models/disturbed/README.md' });
    const { Body } = await environment().client(S3Client).send(card);
    expect(await Body?.transformToString()).toContain(found.runs[0]?.data.digest);
    const weights = new HeadObjectCommand({ Bucket: DATA, Key: 'teams/default/models/disturbed/model.safetensors' });
    const descriptor = await environment().client(SSMClient).send(DESCRIPTOR);
    const { teamKeyArn } = JSON.parse(descriptor.Parameter?.Value ?? '{}');
    expect((await environment().client(S3Client).send(weights)).SSEKMSKeyId).toBe(teamKeyArn);
  });

  test('everything that the run, its launcher and its trainer wrote is encrypted with the key of the team', async () => {
    const ssm = environment().client(SSMClient);
    const { teamKeyArn, kmsKeyArn } = JSON.parse((await ssm.send(DESCRIPTOR)).Parameter?.Value ?? '{}');
    expect(teamKeyArn).toMatch(/:key\//);
    expect(teamKeyArn).not.toBe(kmsKeyArn);
    const s3 = environment().client(S3Client);
    const other: string[] = [];
    for (const Bucket of [CHECKPOINTS, ARTIFACTS]) {
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'runs/default/disturbed/' }));
      expect(Contents.length, Bucket).toBeGreaterThan(1);
      for (const { Key = '' } of Contents) {
        const { SSEKMSKeyId } = await s3.send(new HeadObjectCommand({ Bucket, Key }));
        if (SSEKMSKeyId !== teamKeyArn) other.push(`${Key}: ${SSEKMSKeyId}`);
      }
    }
    expect(other).toEqual([]);
  });

  test('an auditor lists runs and reads status, events and logs, and can stop, release and note nothing', async () => {
    const auditor = await assumed(environment(), `${ROLE}-auditor`);
    const ask = async (...words: string[]) => {
      const { code, stdout, stderr } = await environment().slipwayAs(auditor, ...words, '--json');
      expect([words, code, stderr]).toEqual([words, 0, expect.not.stringContaining('must be')]);
      return stdout;
    };
    const { runs } = JSON.parse(await ask('list'));
    expect(runs.map(({ runId }: { runId: string }) => runId)).toContain('disturbed');
    expect(JSON.parse(await ask('status', 'disturbed'))).toMatchObject({ state: 'completed', committedStep: 14 });
    expect(await ask('status', 'disturbed', '--events')).toContain('"runId":"disturbed"');
    expect(await ask('logs', 'disturbed')).toContain('algo-1');
    expect(JSON.parse(await ask('team', 'e2e')).teams).toMatchObject([{ team: 'default' }, { team: 'other' }]);
    const changes = [
      ['stop', 'disturbed'],
      ['stop', 'disturbed', '--release-pool'],
      ['status', 'disturbed', '--note', 'seen'],
    ];
    for (const words of changes) {
      const refused = await environment().slipwayAs(auditor, ...words);
      expect([words, refused.code]).toEqual([words, 3]);
      expect(refused.stderr).toContain('must be permitted');
    }
  });

  // test/long/smoke.test.ts stops the trainer, and resumes it from what it saved.
  test('stop is asked by the researcher and done by reconcile, which lets the script save', async () => {
    const file = path.join(environment().folder, 'runs/stopped.yaml');
    writeFileSync(file, STOPPED);
    writeFileSync(path.join(environment().folder, 'runs/src/stopped.py'), STOPPED_PY);
    const started = await environment().slipwayAs(researcher, 'launch', file, '--yes', '--run-id', 'stopped');
    expect(started.code, started.stderr).toBe(0);
    await untilLogged(environment(), 'e2e-stopped-a001', 'waits');
    expect((await environment().slipwayAs(researcher, 'stop', 'stopped')).code).toBe(0);
    const ended = await environment().slipwayAs(researcher, 'status', 'stopped', '--wait', '--json');
    expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'stopped', desiredState: 'stop' });
    await untilLogged(environment(), 'e2e-stopped-a001', 'saved');
  });

  test('the warm pool that it left is released by the researcher, through control alone', async () => {
    const job = 'e2e-stopped-a001';
    const sagemaker = environment().client(SageMakerClient, researcher);
    const end = new UpdateTrainingJobCommand({ TrainingJobName: job, ResourceConfig: { KeepAlivePeriodInSeconds: 0 } });
    await expect(sagemaker.send(end)).rejects.toThrow('sagemaker:UpdateTrainingJob');
    const kept = JSON.parse((await environment().slipwayAs(researcher, 'status', 'stopped', '--json')).stdout);
    expect(kept).toMatchObject({ warmPool: { usdPerHour: expect.any(Number) } });
    const released = await environment().slipwayAs(researcher, 'stop', 'stopped', '--release-pool', '--json');
    expect(JSON.parse(released.stdout), released.stderr).toMatchObject({ released: true, trainingJobName: job });
    const describe = new DescribeTrainingJobCommand({ TrainingJobName: job });
    const { WarmPoolStatus } = await environment().client(SageMakerClient).send(describe);
    expect(WarmPoolStatus).toMatchObject({ Status: 'Terminated' });
    const after = JSON.parse((await environment().slipwayAs(researcher, 'status', 'stopped', '--json')).stdout);
    expect(after).not.toHaveProperty('warmPool');
    expect(after.spendUsd).toBeLessThan(kept.spendUsd);
  });

  test('what it left in S3 is deleted by the researcher, through control alone, and it is not resumed', async () => {
    const deleted = await environment().slipwayAs(researcher, 'delete', 'stopped', '--yes', '--json');
    expect(deleted.code, deleted.stderr).toBe(0);
    const s3 = environment().client(S3Client);
    for (const Bucket of [CHECKPOINTS, ARTIFACTS]) {
      const left = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'runs/default/stopped/' }));
      expect(left.KeyCount ?? 0, Bucket).toBe(0);
      const others = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'runs/default/disturbed/' }));
      expect(others.KeyCount, Bucket).toBeGreaterThan(1);
    }
    expect(JSON.parse(deleted.stdout)).toMatchObject({ runId: 'stopped', kept: [] });
    const resumed = await environment().slipwayAs(researcher, 'resume', 'stopped');
    expect(resumed).toMatchObject({ code: 1, stderr: expect.stringContaining('whose files were not deleted') });
  });

  test('a researcher may not stop a job past the launcher', async () => {
    const stop = new StopTrainingJobCommand({ TrainingJobName: 'e2e-disturbed-a002' });
    const denied = environment().client(SageMakerClient, researcher).send(stop);
    await expect(denied).rejects.toThrow('sagemaker:StopTrainingJob');
  });

  test("without the researcher's lambda:InvokeFunction, launch is denied and says so", async () => {
    await without(environment(), `${ROLE}-default-researcher`, 'lambda:InvokeFunction', async () => {
      const denied = await launch('builtin/demo.yaml', 'denied-invoke');
      expect(denied.code).toBe(3);
      expect(denied.stdout).toContain('lambda:InvokeFunction');
    });
  });

  test("without reconcile's sagemaker:CreateTrainingJob, the run waits for a person and says what was denied", async () => {
    await without(
      environment(),
      await roleOf(environment(), 'slipway-e2e-reconcile'),
      'sagemaker:CreateTrainingJob',
      async () => {
        const denied = await launch('builtin/demo.yaml', 'denied-create');
        expect(denied.code).toBe(4);
        expect(denied.stderr).toContain('sagemaker:CreateTrainingJob');
      },
    );
  });
}
