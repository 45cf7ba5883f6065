import { describe, expect, test } from 'vitest';
import { runIdAt } from '../../../lib/core/job/plan';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { BASE, DESCRIPTOR, planOf, runOf } from '../../support/runs';

const requestOf = (more: object = {}) => trainingJobRequest(planOf(runOf({ ...BASE, ...more })));

test('a run id is the name and the second of the start', () => {
  expect(runIdAt('base', new Date('2026-11-01T09:00:07.123Z'))).toBe('base-261101090007');
});

test.each([
  [{}, 'NONE'],
  [{ output: { compression: 'none' } }, 'NONE'],
  [{ output: { compression: 'gzip' } }, 'GZIP'],
])('the output of %j is compressed as %s', (more, type) => {
  expect(requestOf(more).OutputDataConfig?.CompressionType).toBe(type);
});

describe('what a run is watched by', () => {
  const OUTPUT = 's3://artifact-bucket/runs/nlp/base-261101090000/output/';
  const of = (observability: object) => requestOf({ observability });

  test('is nothing unless its file says so', () => {
    const request = requestOf();
    expect(request.ProfilerConfig).toEqual({ DisableProfiler: true });
    for (const part of ['TensorBoardOutputConfig', 'RemoteDebugConfig', 'MlflowConfig'])
      expect(request).not.toHaveProperty(part);
  });

  test('is what its file says, each part alone', () => {
    const profiled = of({ profiler: 'sagemaker' });
    expect(profiled.ProfilerConfig).toEqual({ S3OutputPath: `${OUTPUT}profiler/` });
    expect(profiled).not.toHaveProperty('TensorBoardOutputConfig');
    const board = of({ tensorBoard: true });
    expect(board.TensorBoardOutputConfig).toEqual({ S3OutputPath: `${OUTPUT}tensorboard/` });
    expect(board).not.toHaveProperty('RemoteDebugConfig');
    expect(of({ remoteDebug: true }).RemoteDebugConfig).toEqual({ EnableRemoteDebug: true });
  });
});

test.each([
  [{ maxRuntimeSeconds: 7200 }, { MaxRuntimeInSeconds: 7200 }],
  [
    { maxRuntimeSeconds: 7200, maxPendingSeconds: 7200 },
    { MaxRuntimeInSeconds: 7200, MaxPendingTimeInSeconds: 7200 },
  ],
])('limits of %j are in the request as %j', (limits, condition) => {
  expect(requestOf({ limits }).StoppingCondition).toEqual(condition);
});

describe('variables of the container', () => {
  test('name the image where the driver starts, and the checkpoint where it does not', () => {
    expect(requestOf().Environment).toMatchObject({ SLIPWAY_IMAGE_URI: DESCRIPTOR.trainingImageUri });
    const toolkit = { ...BASE, distribution: { library: 'ddp', contract: 'toolkit' } };
    const plan = { ...planOf(runOf(toolkit)), resumeFrom: 's3://c/step-5' };
    expect(trainingJobRequest(plan).Environment).toMatchObject({ SLIPWAY_RESUME_FROM: 's3://c/step-5' });
    expect(trainingJobRequest(plan).Environment).not.toHaveProperty('SLIPWAY_IMAGE_URI');
    const first = trainingJobRequest({ ...plan, resumeFrom: '' }).Environment;
    expect(first).not.toHaveProperty('SLIPWAY_RESUME_FROM');
  });
});
