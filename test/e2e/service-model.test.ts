import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadRun } from '../../lib/core/config/load';
import type { RunSpec } from '../../lib/core/config/run-spec';
import { processingJobRequest } from '../../lib/core/job/processing-request';
import { trainingJobRequest } from '../../lib/core/job/training-request';
import { validRunFiles } from '../support/arbitrary-runs';
import { RUN_FILES, RUNS } from '../support/run-files';
import { DESCRIPTOR } from '../support/runs';

const ROOT = path.join(__dirname, '../..');
const PYTHON = path.join(ROOT, '.slipway/python/bin/python');

function requestOf(run: RunSpec): object {
  const plan = {
    run,
    // {fsx} of a run file is the environment's file system.
    descriptor: { ...DESCRIPTOR, fileSystems: { scratch: { fsxLustre: 'fs-0123456789abcdef0' } } },
    region: 'us-west-2',
    runId: `${run.name}-261121120000`,
    attempt: 1,
    code: { uri: 's3://artifact-bucket/runs/nlp/x/code/0.tar.gz', sha256: '0' },
    driver: { uri: 's3://artifact-bucket/drivers/0/', hash: '0' },
    configHash: '0',
    resumeFrom: '',
    restartSecret: '',
  };
  return run.kind === 'processing' ? processingJobRequest(plan) : trainingJobRequest(plan);
}

/** Lines of botocore's verdict on the requests; the last one counts them. */
function verdict(requests: object[]): string[] {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-model-'));
  try {
    const file = path.join(folder, 'requests.jsonl');
    writeFileSync(file, requests.map((r) => JSON.stringify(r)).join('\n'));
    const out = execFileSync(PYTHON, [path.join(__dirname, 'validate_requests.py'), file], { encoding: 'utf8' });
    return out.trim().split('\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.skipIf(!existsSync(PYTHON))('requests of 1,000 generated run files fit the service model', () => {
  const seed = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 2 ** 31);
  const runs = fc
    .sample(validRunFiles, { numRuns: 1000, seed })
    .flatMap((file) => loadRun(JSON.stringify(file)).value ?? []);
  expect(verdict(runs.map(requestOf)), `seed ${seed}`).toEqual(['1000 requests']);
});

test.skipIf(!existsSync(PYTHON))('a request with the options that go past the driver fits the service model', () => {
  const run = loadRun(
    JSON.stringify({
      name: 'own-image',
      code: { source: 'image', containerEntrypoint: ['/opt/start'], containerArguments: ['--go'] },
      image: {
        kind: 'uri',
        uri: 'registry.example.com/team/train:1.0',
      },
      compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 2 },
      output: { s3: 's3://{checkpointBucket}/runs/{team}/{runId}/', compression: 'gzip' },
      data: [{ channel: 'weights', s3: 's3://gated/llama/' }],
    }),
  ).value;
  if (!run) throw new Error('the file must be valid');
  expect(verdict([requestOf(run)])).toEqual(['1 requests']);
});

test.skipIf(!existsSync(PYTHON))('requests of every file in runs/ fit the service model', () => {
  const runs = RUN_FILES.flatMap((f) => loadRun(readFileSync(path.join(RUNS, f), 'utf8')).value ?? []);
  expect(verdict(runs.map(requestOf))).toEqual([`${RUN_FILES.length} requests`]);
});
