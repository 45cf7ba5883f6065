// Requests that the SageMaker Python SDK v2 made (test/fixtures/conformance/sdk-v2), imported and made again.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CASES, differences, ENVIRONMENT, SDK_V2 } from '../../support/conformance';
import { runCli } from '../../support/run-cli';

/** All that a run file of these requests cannot say, in any environment. */
const NEVER_CARRIED = [
  'TrainingJobName',
  'HyperParameters.sagemaker_job_name',
  'OutputDataConfig.S3OutputPath',
  'ResourceConfig.VolumeSizeInGB',
  // Of groups some of which have local NVMe storage: the service refuses the key for those.
  'ResourceConfig.VolumeKmsKeyId',
  // 2.0 is 2 in a run file.
  'HyperParameters.whole',
];

let folder: string;
/** An environment that declares the bucket in which the SDK left the code of its jobs. */
let environment: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-import-'));
  environment = path.join(folder, 'environment.json');
  const descriptor = JSON.parse(readFileSync(ENVIRONMENT, 'utf8'));
  const external = [...descriptor.external, { s3: `s3://${descriptor.artifactBucket}/`, access: 'read' }];
  writeFileSync(environment, JSON.stringify({ ...descriptor, external }));
  cpSync(path.join(SDK_V2, 'src'), path.join(folder, 'src'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each(CASES)('%s, imported, is the same request again', async (name) => {
  const expected = path.join(SDK_V2, name, 'expected-request.json');
  const imported = await runCli('import', expected, '--environment', environment, '--json');
  expect(imported.code, imported.stderr).toBe(0);
  const { runFile, notCarried, issues } = JSON.parse(imported.stdout);
  expect(issues.filter((i: { level: string }) => i.level === 'error')).toEqual([]);
  expect(notCarried.map((n: { field: string }) => n.field).filter((f: string) => !NEVER_CARRIED.includes(f))).toEqual(
    [],
  );

  const file = path.join(folder, `${name}.yaml`);
  writeFileSync(file, runFile);
  const made = await runCli('launch', file, '--environment', environment, '--run-id', `case-${name}`, '--dry-run');
  expect(made.code, made.stderr).toBe(0);
  const actual = path.join(folder, `${name}.json`);
  writeFileSync(actual, made.stdout);
  expect(differences(expected, actual)).toBe('');
});
