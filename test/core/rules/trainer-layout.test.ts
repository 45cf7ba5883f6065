import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { fsdpCompiles } from '../../../lib/core/distribution/fsdp';
import { RUN_FILES, RUNS } from '../../support/run-files';
import { trainerVerdicts } from '../../support/trainer-layout';
import { compareWithTrainer, layoutOf } from './compare-with-trainer';

function shippedRuns(): { file: string; run: RunSpec }[] {
  return RUN_FILES.flatMap((file) => {
    const run = loadRun(readFileSync(path.join(RUNS, file), 'utf8')).value;
    return run?.code.builtin === 'builtin' ? [{ file, run }] : [];
  });
}

test('the trainer takes every shipped run file for the built-in trainer, in the layout that the plan shows', () => {
  const shipped = shippedRuns();
  expect(shipped.length).toBeGreaterThanOrEqual(4);
  const verdicts = trainerVerdicts(shipped.map(({ run }) => run));
  expect(verdicts.map((verdict, i) => [shipped[i]?.file, verdict])).toEqual(
    shipped.map(({ file, run }) => [file, { layout: layoutOf(run), compiles: fsdpCompiles(run) }]),
  );
});

test('rules refuse exactly what the trainer would refuse on the instances, and both infer the same degrees', {
  timeout: 120_000,
}, () => {
  expect(compareWithTrainer(500)).toBeGreaterThan(50);
});
