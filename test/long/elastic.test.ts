// Runs that release capacity and runs of varying size, with the real control plane, driver and trainer on the embedded AWS.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { DescribeTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf, eventually } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
teams: { default: { data: ["demo-tokens/"] } }
queue: { preemption: { afterMinutes: 0, leastTrainingMinutes: 0, protectedMinutes: 0 } }
`;
/** Two m5.xlarge; totals and instances of a job as needed. */
const QUOTAS = { 'L-CCE2AFA6': 2, 'L-00C91CB5': 64, 'L-622CFD70': 64 };
const BUCKET = 'slipway-e2e-000000000000-us-west-2-data';
const STEPS = 30;
const SHORT = `name: short
code: { source: ./src, entryPoint: wait.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
priority: 1
`;

let deployed: Deployed;
beforeAll(async () => {
  deployed = await deployedSandbox(
    ENVIRONMENT,
    QUOTAS,
    {},
    {
      'runs/short.yaml': SHORT,
      'runs/src/wait.py': 'import os, time\ntime.sleep(float(os.environ.get("SECONDS", "0")))\n',
    },
  );
  const library = execFileSync('python3', ['-c', 'import os; print(os.path.dirname(os.__file__))'], {
    encoding: 'utf8',
  });
  const raw = path.join(deployed.folder, 'raw');
  mkdirSync(raw);
  const files = readdirSync(library.trim()).filter((file) => file.endsWith('.py'));
  for (const file of files.slice(0, 20)) copyFileSync(path.join(library.trim(), file), path.join(raw, file));
  const aws = path.join(ROOT, '.slipway/python/bin/aws');
  await deployed.call(aws, ['s3', 'cp', raw, `s3://${BUCKET}/demo-raw/`, '--recursive', '--no-progress']);
  await deployed.slipway('launch', path.join(ROOT, 'runs/data/demo-tokenize.yaml'), '--yes', '--wait');
  await launch('calm', 'compute.instanceCount=2');
  await ended('calm');
});
afterAll(() => deployed?.end());

interface Status {
  state: string;
  reason: string;
  step: number | null;
  attempts: { status: string; reason: string; firstStep: number; lastStep: number; instanceCount: number }[];
}
const status = async (runId: string) => JSON.parse(await deployed.slipway('status', runId, '--json')) as Status;
const ended = async (runId: string) =>
  JSON.parse(await deployed.slipway('status', runId, '--wait', '--json')) as Status;

async function launch(runId: string, ...set: string[]): Promise<void> {
  const options = [
    `training.steps=${STEPS}`,
    'training.microBatchSize=1',
    'training.globalBatchSize=4',
    'code.arguments.save-every-steps=10',
    'environmentVariables.SLIPWAY_HAND_OVER_SECONDS="1"',
    ...set,
  ];
  const file = path.join(ROOT, 'runs/builtin/demo.yaml');
  await deployed.slipway('launch', file, '--yes', '--json', '--run-id', runId, ...options.flatMap((o) => ['--set', o]));
}

const short = (runId: string, ...set: string[]) =>
  deployed.slipway(
    ...['launch', path.join(deployed.folder, 'runs/short.yaml'), '--yes', '--json', '--run-id', runId],
    ...set.flatMap((o) => ['--set', o]),
  );

interface Told {
  at: string;
  what: string;
  evidence: Record<string, unknown>;
}
/** The objects that a command prints, one a line. */
const printed = async <T>(...command: string[]) =>
  (await deployed.slipway(...command, '--json'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
const events = (runId: string) => printed<Told>('status', runId, '--events');

/** Until a run has made so many steps, by its log: the heartbeat that `status` shows is up to a minute old. */
const reaches = (runId: string, step: number) =>
  eventually(async () => (await losses(runId)).size >= step, {
    timeoutSeconds: 120,
    what: `step ${step} of ${runId}`,
  });

/** Of each step the loss of the attempt that made it last. */
async function losses(runId: string): Promise<Map<number, number>> {
  const messages = (await printed<{ message: string }>('logs', runId)).map(({ message }) => message);
  const steps = messages
    .filter((message) => message.startsWith('slipway {"event":"step"'))
    .map((message) => JSON.parse(message.slice(8)) as { step: number; loss: number });
  return new Map(steps.map(({ step, loss }) => [step, loss]));
}

const byStep = (found: Map<number, number>) => [...found].sort((a, b) => a[0] - b[0]);

test('a preemptible run makes room, resumes, and has the losses of an undisturbed one to the last digit', async () => {
  await launch('background', 'preemptible=true', 'compute.instanceCount=2', 'code.arguments.minimum-step-seconds=1');
  await reaches('background', 3);
  await short('urgent', 'compute.instanceCount=2');
  expect(await ended('urgent')).toMatchObject({ state: 'completed', attempts: [{ status: 'Completed' }] });
  const background = await ended('background');
  expect(background).toMatchObject({ state: 'completed', attempts: [{ status: 'Failed' }, { status: 'Completed' }] });
  const [first, second] = background.attempts;
  expect(first?.reason).toBe('asked to save and make room for urgent');
  const job = new DescribeTrainingJobCommand({ TrainingJobName: 'e2e-background-a001' });
  const { FailureReason } = await deployed.client(SageMakerClient).send(job);
  expect(FailureReason).toContain('exit code: 76');
  // The save at the hand-over keeps every step.
  expect(second?.firstStep).toBe((first?.lastStep ?? 0) + 1);
  expect(first?.lastStep).toBeGreaterThanOrEqual(3);
  expect(first?.lastStep).toBeLessThan(STEPS);

  const told = await events('background');
  const what = told.map((line) => line.what);
  expect(what).toEqual(expect.arrayContaining(['hand-over-asked', 'attempt-ended', 'run-preempted', 'run-completed']));
  expect(what.indexOf('hand-over-asked')).toBeLessThan(what.indexOf('run-preempted'));
  // It left by itself, and waits where it stood before.
  expect(what).not.toContain('stop-decided');
  const [joined, back] = ['run-confirmed', 'run-preempted'].map((one) => told.find((line) => line.what === one));
  expect(back?.evidence.queuedAt).toBe(Date.parse(joined?.at ?? ''));

  const [disturbed, undisturbed] = [await losses('background'), await losses('calm')];
  expect(undisturbed.size).toBe(STEPS);
  expect(byStep(disturbed)).toEqual(byStep(undisturbed));
});

test('a run of one to two instances starts with the one that is free and goes on with two, at the same losses to rounding', async () => {
  await short('blocker', 'environmentVariables.SECONDS="600"');
  await launch('grows', 'compute.instanceCount={"min":1,"max":2}', 'code.arguments.minimum-step-seconds=0.6');
  await reaches('grows', 1);
  // Its capacity is free from now on; the next attempt takes it.
  await deployed.slipway('stop', 'blocker');
  await eventually(async () => (await status('blocker')).state === 'stopped', { what: 'blocker stopped' });
  await adminOf(deployed).fault({
    kind: 'instance-killed',
    jobName: 'e2e-grows-a001',
    host: 1,
    step: 14,
    as: 'container',
  });
  const grows = await ended('grows');
  expect(grows).toMatchObject({ state: 'completed' });
  expect(grows.attempts.map((a) => [a.status, a.instanceCount])).toEqual([
    ['Failed', 1],
    ['Completed', 2],
  ]);

  const [elastic, plain] = [await losses('grows'), await losses('calm')];
  expect([...elastic.keys()].sort((a, b) => a - b)).toEqual([...plain.keys()].sort((a, b) => a - b));
  const apart = byStep(elastic).map(([step, loss]) => Math.abs(loss - (plain.get(step) ?? Number.NaN)) / loss);
  expect(Math.max(...apart)).toBeLessThan(1e-4);
  console.log(`largest relative difference of the losses: ${Math.max(...apart)}`);
});
