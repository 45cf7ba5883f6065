import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { StatusAnswer } from '../../lib/core/contracts/control';
import type { RunReport } from '../../lib/report/run/run-report';
import { REGIONS } from './deploy';
import type { Demo } from './main';
import { screen } from './screen';

const [REGION] = REGIONS;
/** The crash comes after this step: later than the first checkpoint, well before the end. */
const CRASH_STEP = 27;
/** Files of Python's standard library that are tokenised: real text that is on every machine with Python. */
const TEXT_FILES = 60;

export interface Trained {
  run: {
    runId: string;
    status: string;
    attempts: {
      trainingJobName: string;
      status: string;
      firstStep: number | null;
      lastStep: number | null;
      reason: string;
    }[];
  };
  committedSteps: number[];
  loss: { first: number; last: number };
}

async function slipway(demo: Demo, name: string, args: readonly string[], onLine?: (line: string) => void) {
  const [node = '', cli = ''] = demo.slipway;
  return demo.programs.mustRun(name, node, [cli, ...args, '--environment', 'demo', '--region', REGION], onLine);
}

/** Real text into the data bucket, then the tokenise step as a processing run. */
export async function prepareData(demo: Demo): Promise<void> {
  screen.step(5, 'prepare data: the Python standard library, tokenised into shards by a processing run');
  const bucket = `slipway-demo-000000000000-${REGION}-data`;
  const folder = execFileSync('python3', ['-c', 'import os; print(os.path.dirname(os.__file__))'], {
    encoding: 'utf8',
  }).trim();
  const s3 = new S3Client({
    region: REGION,
    endpoint: demo.sandbox.endpoints.aws,
    forcePathStyle: true,
    credentials: credentials(demo),
  });
  const files = readdirSync(folder)
    .filter((f) => f.endsWith('.py'))
    .slice(0, TEXT_FILES);
  await Promise.all(
    files.map((file) =>
      s3.send(
        new PutObjectCommand({ Bucket: bucket, Key: `demo-raw/${file}`, Body: readFileSync(path.join(folder, file)) }),
      ),
    ),
  );
  screen.detail(`${files.length} files to s3://${bucket}/demo-raw/`);
  await slipway(
    demo,
    'tokenize',
    ['launch', path.join(demo.root, 'runs/data/demo-tokenize.yaml'), '--yes', '--wait'],
    screen.detail,
  );
}

function credentials({ sandbox }: Demo) {
  return { accessKeyId: sandbox.env.AWS_ACCESS_KEY_ID ?? '', secretAccessKey: sandbox.env.AWS_SECRET_ACCESS_KEY ?? '' };
}

/** Launches the demo run, kills an instance in mid-training, waits until it is done, writes the report. */
export async function trainThroughCrash(demo: Demo): Promise<Trained> {
  screen.step(6, `launch a small GPT on two instances; one of them dies after step ${CRASH_STEP}`);
  await demo.admin.fault({
    kind: 'instance-killed',
    jobName: 'demo-demo-*-a001',
    host: 2,
    step: CRASH_STEP,
    as: 'container',
  });
  const launched = await slipway(
    demo,
    'launch',
    ['launch', path.join(demo.root, 'runs/builtin/demo.yaml'), '--yes', '--wait', '--json'],
    (line) => {
      if (/^demo-\d+: /.test(line)) screen.detail(line);
    },
  );
  const status = JSON.parse(launched.stdout.slice(launched.stdout.indexOf('{'))) as StatusAnswer;
  screen.step(7, 'report');
  const html = path.join(demo.folder, 'report.html');
  const report = await slipway(demo, 'report', ['report', status.runId, '--html', html, '--json']);
  const numbers = JSON.parse(report.stdout) as Pick<RunReport, 'steps' | 'checkpoints'>;
  const losses = (numbers.steps ?? []).flatMap((s) => s.loss ?? []);
  const trained = {
    run: {
      runId: status.runId,
      status:
        { completed: 'Completed', failed: 'Failed', stopped: 'Stopped' }[status.state as 'completed'] ?? status.state,
      attempts: status.attempts.map(({ trainingJobName, status: jobStatus, firstStep, lastStep, reason }) => ({
        trainingJobName,
        status: jobStatus,
        firstStep,
        lastStep,
        reason,
      })),
    },
    committedSteps: (numbers.checkpoints ?? []).map((c) => c.step),
    loss: { first: losses[0] ?? Number.NaN, last: losses[losses.length - 1] ?? Number.NaN },
  };
  for (const a of trained.run.attempts)
    screen.detail(
      `${a.trainingJobName}: ${a.status}, steps ${a.firstStep}-${a.lastStep}${a.reason ? ` (${a.reason})` : ''}`,
    );
  screen.detail(`loss ${trained.loss.first.toFixed(3)} -> ${trained.loss.last.toFixed(3)}`);
  return trained;
}
