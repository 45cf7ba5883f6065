import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { mockClient } from '../support/mocked-clients';
import { runCli } from '../support/run-cli';
import { BASE, DESCRIPTOR } from '../support/runs';

const ssm = mockClient(SSMClient);
let folder: string;
const at = (name: string) => path.join(folder, name);
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-launch-'));
  cpSync(path.join(__dirname, '../fixtures/conformance/rules/src'), at('src'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => {
  ssm.reset();
  ssm
    .on(GetParameterCommand, { Name: '/slipway/environments/research/nlp' })
    .resolves({ Parameter: { Value: JSON.stringify({ ...DESCRIPTOR, external: [] }) } });
});

/** Launches a file that names its environment itself, asking for JSON. */
function launch(file: object): ReturnType<typeof runCli> {
  writeFileSync(at('run.yaml'), JSON.stringify({ ...BASE, environment: 'research/nlp', ...file }));
  return runCli('launch', at('run.yaml'), '--region', 'us-west-2', '--run-id', 'r1', '--dry-run', '--json');
}

const errorsOf = (stdout: string) =>
  JSON.parse(stdout).issues.filter(({ level }: { level: string }) => level === 'error');

test('fails: what needs no environment is refused before one is looked for', async () => {
  const { code, stdout } = await launch({ compute: { instanceType: 'ml.nope' } });
  expect(code).not.toBe(0);
  expect(errorsOf(stdout)).toMatchObject([{ rule: 'compute/instance-type' }]);
  expect(ssm.calls()).toHaveLength(0);
});

test('fails: what the environment of the run file forbids is refused once it is known', async () => {
  const data = [{ channel: 'train', s3: 's3://bucket-of-nobody/tokens/' }];
  const { code, stdout } = await launch({ data });
  expect(code).not.toBe(0);
  expect(errorsOf(stdout)).toMatchObject([{ rule: 'data/foreign-bucket' }]);
  expect(ssm.calls()).toHaveLength(1);
});
