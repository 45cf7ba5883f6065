// `tsx bench/synth.ts`: how long `node dist/bin/app.js` takes for an environment of two regions, beside an app of one
// stack with one empty resource on the same aws-cdk-lib. Medians of several runs, taken in turns. `--check` fails when a
// synthesis with every check is above the limit. The first one of a template, which validates it, stands in its own line.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.join(__dirname, '..');
const RUNS = 5;
const LIMIT = 1.3;
const EMPTY = `
const { App, CfnWaitConditionHandle, Stack } = require(${JSON.stringify(path.join(ROOT, 'node_modules', 'aws-cdk-lib'))});
const app = new App();
const stack = new Stack(app, 'Empty', { env: { account: '111122223333', region: 'us-west-2' } });
new CfnWaitConditionHandle(stack, 'Nothing');
app.synth();
`;

function secondsOf(script: string, context: Record<string, unknown>, folder: string, validation = 'true'): number {
  const env = {
    ...process.env,
    CDK_CONTEXT_JSON: JSON.stringify(context),
    CDK_OUTDIR: path.join(folder, 'cdk.out'),
    CDK_DEFAULT_ACCOUNT: '111122223333',
    CDK_VALIDATION: validation,
  };
  const started = process.hrtime.bigint();
  execFileSync(process.execPath, [script], { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] });
  return Number(process.hrtime.bigint() - started) / 1e9;
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-synth-'));
try {
  const { context } = JSON.parse(readFileSync(path.join(ROOT, 'cdk.json'), 'utf8')) as {
    context: Record<string, unknown>;
  };
  const empty = path.join(folder, 'empty.js');
  writeFileSync(empty, EMPTY);
  const ours: number[] = [];
  const firsts: number[] = [];
  const unchecked: number[] = [];
  const peers: number[] = [];
  const uncheckedPeers: number[] = [];
  for (let i = 0; i < RUNS; i++) {
    peers.push(secondsOf(empty, context, folder));
    uncheckedPeers.push(secondsOf(empty, context, folder, 'false'));
    const demo = { ...context, environment: 'environments/demo.yaml' };
    rmSync(path.join(ROOT, '.slipway', 'validation'), { recursive: true, force: true });
    firsts.push(secondsOf('dist/bin/app.js', demo, folder));
    ours.push(secondsOf('dist/bin/app.js', demo, folder));
    unchecked.push(secondsOf('dist/bin/app.js', { ...demo, checks: 'off' }, folder));
  }
  const line = (name: string, seconds: number) =>
    `${name.padEnd(32)} ${seconds.toFixed(2)} s  ${(seconds / median(peers)).toFixed(2)} x`;
  console.log(line('one empty stack', median(peers)));
  console.log(line('one empty stack, unvalidated', median(uncheckedPeers)));
  console.log(line('two regions, checks=off', median(unchecked)));
  console.log(line('two regions, every check', median(ours)));
  console.log(line('two regions, templates are new', median(firsts)));
  if (process.argv.includes('--check') && median(ours) / median(peers) > LIMIT) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
