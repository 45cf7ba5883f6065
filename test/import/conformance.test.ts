// Requests that the SageMaker Python SDK v2 made (test/fixtures/conformance/sdk-v2), imported and made again.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../support/run-cli';

const ROOT = path.join(__dirname, '../fixtures/conformance/sdk-v2');
const CASES = readdirSync(ROOT).filter((name) => existsSync(path.join(ROOT, name, 'run.yaml')));
const ENVIRONMENT = path.join(ROOT, 'environment.json');
const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();

/** All that a run file of these requests cannot say, in any environment. */
const NEVER_CARRIED = [
  'TrainingJobName',
  'HyperParameters.sagemaker_job_name',
  'OutputDataConfig.S3OutputPath',
  'ResourceConfig.VolumeSizeInGB',
  // Of groups some of which have local NVMe storage: the service refuses the key for those.
  'ResourceConfig.VolumeKmsKeyId',
];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-import-'));
  cpSync(path.join(ROOT, 'src'), path.join(folder, 'src'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each(CASES)('%s, imported, is the same request again', async (name) => {
  const expected = path.join(ROOT, name, 'expected-request.json');
  const imported = await runCli('import', expected, '--environment', ENVIRONMENT, '--json');
  expect(imported.code, imported.stderr).toBe(0);
  const { runFile, notCarried, issues } = JSON.parse(imported.stdout);
  expect(issues.filter((i: { level: string }) => i.level === 'error')).toEqual([]);
  expect(notCarried.map((n: { field: string }) => n.field).filter((f: string) => !NEVER_CARRIED.includes(f))).toEqual(
    [],
  );

  const file = path.join(folder, `${name}.yaml`);
  writeFileSync(file, runFile);
  const made = await runCli('launch', file, '--environment', ENVIRONMENT, '--run-id', `case-${name}`, '--dry-run');
  expect(made.code, made.stderr).toBe(0);
  const actual = path.join(folder, `${name}.json`);
  writeFileSync(actual, made.stdout);
  expect(differences(expected, actual)).toBe('');
});

/** One a line; '' when there are none. */
function differences(expected: string, actual: string): string {
  try {
    execFileSync(PYTHON, [path.join(ROOT, 'compare.py'), expected, actual, ENVIRONMENT], { encoding: 'utf8' });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
