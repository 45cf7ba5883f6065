import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readEnvironments } from '../../../lib/cdk/read-environments';
import { runCli } from '../../support/run-cli';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-environment-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (text: string): string => {
  const file = path.join(folder, 'one.yaml');
  writeFileSync(file, text);
  return file;
};

test.each([
  'name: one\nregions: { us-west-2: {} }\n',
  'name: one\nregions: { us-west-2: {} }\nnetwork: { mode: existing }\n',
  'name: Bad\nregions: { us-west-2: {} }\nprices: { ml.no: 1 }\n',
  'name: one\nquotas: { enforce: fail }\n',
])('validate says what a synthesis says: %j', async (text) => {
  const file = write(text);
  const { stdout, code } = await runCli('validate', file, '--json');
  const said = (JSON.parse(stdout) as { issues: { message: string }[] }).issues.map(({ message }) => message);
  const { problems } = await readEnvironments({ file });
  expect(problems.map((p) => p.text.replace(/^.*?: (error|warning): /, ''))).toEqual(said);
  expect(code).toBe(problems.some((p) => p.level === 'error') ? 1 : 0);
});

test.each([
  ['a lock file', 'image: { base: cuda }', 'run slipway preflight'],
  ['a run file', 'runs: [{ file: missing.yaml }]', 'must be a file that exists'],
])('%s that is not there (yet) is a warning of validate and refuses a synthesis', async (_what, line, text) => {
  const file = write(`name: one\nregions: { us-west-2: {} }\n${line}\n`);
  const { stdout, code } = await runCli('validate', file, '--json');
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { ok: true, issues: [{ level: 'warning' }] }]);
  const { problems } = await readEnvironments({ file });
  expect(problems).toMatchObject([{ level: 'error', text: expect.stringContaining(text) }]);
});

test.each(['quota', 'preflight'])('fails: %s of a region that the file does not have', async (verb) => {
  const file = write('name: one\nregions: { us-west-2: {}, us-east-1: {} }\n');
  expect(await runCli(verb, file, '--region', 'eu-west-1')).toMatchObject({
    code: 2,
    stderr: `slipway: --region: must be a region of ${file}, got eu-west-1; use us-west-2 or us-east-1`,
  });
});

test.each([['quota'], ['preflight'], ['preflight', '--lock'], ['preflight', '--regions']])(
  'fails: %s %s of a file that a deploy would refuse',
  async (verb, ...options) => {
    const file = write('name: one\nregions: { us-west-2: {} }\nnetwork: { mode: existing }\n');
    const { code, stderr } = await runCli(verb, file, ...options);
    expect(code).toBe(1);
    expect(stderr).toContain('network.existing: must be set with mode existing');
  },
);

test('a finding in a run file names that file', async () => {
  const file = write('name: one\nregions: { us-west-2: {} }\nruns: [{ file: run.yaml }]\n');
  writeFileSync(path.join(folder, 'run.yaml'), 'name: run\ncode: 3\ncompute: { instanceType: ml.g5.xlarge }\n');
  const { stdout, stderr } = await runCli('validate', file, '--json');
  expect(JSON.parse(stdout)).toMatchObject({ issues: [{ path: 'code', file: path.join(folder, 'run.yaml') }] });
  expect(stderr).toBe('');
  expect((await runCli('validate', file)).stderr).toContain(`${path.join(folder, 'run.yaml')}:2:7: `);
});
