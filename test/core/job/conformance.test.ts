// Golden requests of the SageMaker Python SDK v2: test/fixtures/conformance/sdk-v2 (README there); compare.py decides.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CASES, differences, ENVIRONMENT, SDK_V2 } from '../../support/conformance';
import { runCli } from '../../support/run-cli';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-sdk-'));
  cpSync(path.join(SDK_V2, 'src'), path.join(folder, 'src'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each(CASES)('%s is what the SDK sends', async (name) => {
  const file = path.join(folder, `${name}.yaml`);
  const actual = path.join(folder, `${name}.actual.json`);
  cpSync(path.join(SDK_V2, name, 'run.yaml'), file);
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
  expect(differences(path.join(SDK_V2, name, 'expected-request.json'), actual)).toBe('');
});
