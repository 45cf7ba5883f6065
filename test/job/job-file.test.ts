import { expect, test } from 'vitest';
import { jobFile } from '../../lib/job/job-file';
import type { JobPlan } from '../../lib/job/plan';
import { BASE, DESCRIPTOR, runOf } from '../support/runs';

const argumentsOf = (file: Record<string, unknown>) => {
  const plan: JobPlan = {
    run: runOf({ ...BASE, ...file }),
    descriptor: DESCRIPTOR,
    region: 'us-west-2',
    runId: 'base-261101090000',
    attempt: 1,
    configHash: 'c',
    driver: { uri: 's3://artifact-bucket/drivers/0f3a9c/', hash: '0f3a9c' },
    resumeFrom: '',
    restartSecret: 's',
  };
  return jobFile(plan).arguments;
};
const OBSERVED = {
  profiler: 'pytorch',
  tensorBoard: true,
  mlflow: { arn: 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/x', experiment: 'e' },
};

test('the built-in trainer is told what to observe; own code gets its own arguments alone', () => {
  const code = { source: 'builtin', arguments: { 'clip-norm': 2 } };
  const asked = ['--tensorboard', '--mlflow', '--profile'];
  expect(argumentsOf({ code, observability: OBSERVED })).toEqual(['--clip-norm', '2', ...asked]);
  expect(argumentsOf({ code, observability: { profiler: 'off' } })).toEqual(['--clip-norm', '2']);
  expect(argumentsOf({ observability: OBSERVED })).toEqual(argumentsOf({}));
});
