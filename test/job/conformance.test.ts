// Golden requests of the SageMaker Python SDK v2: test/fixtures/conformance/sdk-v2 (README there); compare.py decides.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../support/run-cli';

const ROOT = path.join(__dirname, '../fixtures/conformance/sdk-v2');
const CASES = readdirSync(ROOT).filter((name) => existsSync(path.join(ROOT, name, 'run.yaml')));
const ENVIRONMENT = path.join(ROOT, 'environment.json');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-sdk-'));
  cpSync(path.join(ROOT, 'src'), path.join(folder, 'src'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each(CASES)('%s is what the SDK sends', async (name) => {
  const file = path.join(folder, `${name}.yaml`);
  const actual = path.join(folder, `${name}.actual.json`);
  cpSync(path.join(ROOT, name, 'run.yaml'), file);
  const result = await runCli(
    'launch',
    file,
    '--environment',
    ENVIRONMENT,
    '--region',
    'us-west-2',
    '--run-id',
    `case-${name}`,
    '--dry-run',
  );
  expect(result.code, result.stderr).toBe(0);
  writeFileSync(actual, result.stdout);
  expect(compare(path.join(ROOT, name, 'expected-request.json'), actual)).toBe('');
});

/** The interpreter itself: a version manager's stand-in for it would start as often as it does, and take as long. */
const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();

/** The differences, one a line; '' when there are none. */
function compare(expected: string, actual: string): string {
  try {
    execFileSync(PYTHON, [path.join(ROOT, 'compare.py'), expected, actual, ENVIRONMENT], { encoding: 'utf8' });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
