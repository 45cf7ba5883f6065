// The scripts of docs/examples/train-on-label.yaml, run as a runner of GitHub Actions runs them: step by step, with `GITHUB_ENV` between the steps,
// against a deployed environment. `gh` is a program that keeps what it is given.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';

const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');
const QUOTAS = { 'L-CCE2AFA6': 4, 'L-622CFD70': 16 };
const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
teams: { default: {} }
`;
const runFile = (entryPoint: string) => `name: labelled
code: { source: ./src, entryPoint: ${entryPoint} }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600, maxCostUsd: 1, maxAttempts: 1 }
`;
const FILES = {
  'runs/good.yaml': runFile('good.py'),
  'runs/bad.yaml': runFile('bad.py'),
  'runs/src/good.py': `print('slipway {"event":"step","step":1,"loss":2.5}', flush=True)\n`,
  'runs/src/bad.py': 'raise SystemExit(3)\n',
};
const { steps } = (
  parse(readFileSync(path.join(ROOT, 'docs/examples/train-on-label.yaml'), 'utf8')) as {
    jobs: { train: { steps: { name?: string; run?: string }[] } };
  }
).jobs.train;

let deployed: Deployed;
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS, {}, FILES);
});
afterAll(() => deployed?.end());

interface Ended {
  /** Exit code by step. */
  codes: Record<string, number | null>;
  env: Record<string, string>;
  comment: string;
  /** What `gh` was called with. */
  asked: string;
  output: string;
}

/** The shell of a runner: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell. Not at once: this process serves SageMaker. */
function bash(
  script: string,
  cwd: string,
  env: Record<string, string>,
): Promise<{ status: number | null; text: string }> {
  const child = spawn('bash', ['-e', '-c', script], { cwd, env });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (some: string) => {
      text += some;
    });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, text }));
  });
}

/** Runs the steps that have a name, in their order, until one fails, in a folder of their own. */
async function runJob(file: string, commit: string): Promise<Ended> {
  const home = mkdtempSync(path.join(deployed.folder, 'runner-'));
  const bin = path.join(home, 'bin');
  mkdirSync(bin);
  // What `npx slipway` starts in a repository that has the package.
  const npx = `#!/bin/sh\nshift\nexec "${process.execPath}" "${CLI}" "$@"\n`;
  writeFileSync(path.join(bin, 'npx'), npx, { mode: 0o755 });
  writeFileSync(path.join(bin, 'gh'), `#!/bin/sh\necho "$@" >> "${home}/asked"\n`, { mode: 0o755 });
  const kept = path.join(home, 'github-env');
  writeFileSync(kept, '');
  const codes: Ended['codes'] = {};
  let output = '';
  const env = (): Record<string, string> =>
    Object.fromEntries(
      [...readFileSync(kept, 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(([, key, value]) => [key, value]),
    );
  for (const { name, run } of steps) {
    if (name === undefined || run === undefined) continue;
    const given = {
      ENVIRONMENT: 'e2e/default',
      RUN_FILE: path.join(deployed.folder, file),
      PULL_REQUEST: '7',
      COMMIT: commit,
    };
    const { status, text } = await bash(run, home, {
      ...deployed.env,
      ...given,
      ...env(),
      ...{ PATH: `${bin}:${process.env.PATH}`, HOME: home, GITHUB_ENV: kept, AWS_REGION: 'us-west-2' },
      ...{ NODE_NO_WARNINGS: '1', SLIPWAY_POLL_SECONDS: '1' },
    });
    codes[name] = status;
    output += text;
    if (status !== 0) break;
  }
  const read = (name: string) => (existsSync(path.join(home, name)) ? readFileSync(path.join(home, name), 'utf8') : '');
  const ended = { codes, env: env(), comment: read('comment.md'), asked: read('asked'), output };
  rmSync(home, { recursive: true });
  return ended;
}

test('a label launches the commit, waits, and comments the report; the same commit again is the same run', async () => {
  const first = await runJob('runs/good.yaml', 'a'.repeat(40));
  expect([first.codes, first.output]).toEqual([{ launch: 0, wait: 0, report: 0, result: 0 }, expect.any(String)]);
  expect(first.env).toEqual({ RUN_ID: expect.stringMatching(/^labelled-\d{12}$/), RESULT: '0' });
  expect(first.comment).toContain(`### Run \`${first.env.RUN_ID}\` of ${'a'.repeat(40)}`);
  expect(first.comment).toMatch(/^step 1 .* loss 2\.5000/m);
  expect(first.asked).toBe('pr comment 7 --edit-last --create-if-none --body-file comment.md\n');
  expect((await runJob('runs/good.yaml', 'a'.repeat(40))).env.RUN_ID).toBe(first.env.RUN_ID);
});

test('a run that failed is commented, and fails the job with its exit code', async () => {
  const { codes, env, comment } = await runJob('runs/bad.yaml', 'b'.repeat(40));
  expect(codes).toEqual({ launch: 0, wait: 0, report: 0, result: 4 });
  expect(env.RESULT).toBe('4');
  expect(comment).toContain('failed');
});

test('fails: a file that is refused ends the job at the launch, and says why', async () => {
  const { codes, output } = await runJob('runs/missing.yaml', 'c'.repeat(40));
  expect(codes.launch).not.toBe(0);
  expect(Object.keys(codes)).toEqual(['launch']);
  expect(output).toContain('missing.yaml: must be a readable file');
});
