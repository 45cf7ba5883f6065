// What must happen although something cannot be seen.

import { DescribeTrainingJobCommand, StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import { describe, expect, test } from 'vitest';
import { serviceError } from '../control/support/fake-sagemaker';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../control/support/fake-world';

const denied = () => serviceError('AccessDeniedException', 'denied by a service control policy', 400);
const denyDescribe = (world: FakeWorld) =>
  world.sagemaker.mock.on(DescribeTrainingJobCommand).callsFake(() => {
    throw denied();
  });

async function training(runFile = RUN_FILE) {
  const world = fakeWorld();
  world.describe({ prices: { 'ml.m5.xlarge': 10 } });
  const runId = await world.launch(runFile);
  world.train(`research-${runId}-a001`);
  await world.tick(5);
  return { world, runId };
}
const hours = async (world: FakeWorld, count: number) => {
  for (let i = 0; i < count * 12; i++) await world.tick(5);
};
const told = (world: FakeWorld, words: string) => world.published.filter((text) => text.includes(words)).length;

describe('while the job cannot be described', () => {
  test('a stop that a person asked for is sent', async () => {
    const { world, runId } = await training();
    denyDescribe(world);
    await world.ask({ action: 'stop', runId });
    await world.settle();
    expect(world.sagemaker.job(`research-${runId}-a001`).status).toBe('Stopping');
  });

  test('a stop that the service refuses is sent again', async () => {
    const { world, runId } = await training();
    denyDescribe(world);
    let calls = 0;
    world.sagemaker.mock.on(StopTrainingJobCommand).callsFake(() => {
      calls += 1;
      if (calls < 3) throw denied();
      return {};
    });
    await world.ask({ action: 'stop', runId });
    await world.settle();
    for (let i = 0; i < 5; i++) await world.tick(5);
    expect(calls).toBe(3);
  });

  test('a stop that is asked for before the first description is sent', async () => {
    const world = fakeWorld();
    denyDescribe(world);
    const runId = await world.launch();
    await world.ask({ action: 'stop', runId });
    await world.settle();
    await world.tick(10);
    expect(world.sagemaker.calls.stop).toBeGreaterThan(0);
  });

  test('the cap is kept by the own clock', async () => {
    const { world } = await training(`${RUN_FILE}limits: { maxCostUsd: 100 }\n`);
    denyDescribe(world);
    await hours(world, 4);
    expect(world.sagemaker.calls.stop).toBe(0);
    await hours(world, 2);
    expect(world.sagemaker.calls.stop).toBeGreaterThan(0);
  });

  test('a person is told after 20 minutes, and again each day', async () => {
    const { world } = await training();
    denyDescribe(world);
    await world.tick(10);
    expect(told(world, 'cannot be described')).toBe(0);
    await world.tick(10);
    await world.tick(10);
    expect(told(world, 'cannot be described')).toBe(1);
    await hours(world, 23);
    expect(told(world, 'cannot be described')).toBe(1);
    await hours(world, 24);
    expect(told(world, 'cannot be described')).toBe(2);
  });

  test('what a stopped job costs is estimated up to its stop, and booked as billed later', async () => {
    const { world, runId } = await training();
    denyDescribe(world);
    await world.ask({ action: 'stop', runId });
    await hours(world, 10);
    const status = (await world.ask({ action: 'status', runId })) as unknown as { spendUsd: number };
    expect(status.spendUsd).toBeLessThan(15);
  });
});

describe('an answer that is empty although the call succeeded', () => {
  test('ends no attempt', async () => {
    const { world, runId } = await training();
    world.sagemaker.mock.on(DescribeTrainingJobCommand).callsFake(() => ({ $metadata: {} }));
    await world.tick(5);
    await world.tick(5);
    expect(await world.ask({ action: 'status', runId })).toMatchObject({ state: 'running', attempt: 1 });
    expect(world.sagemaker.jobs.size).toBe(1);
  });
});

test('a stop is carried out while S3 and the descriptor cannot be read', async () => {
  const { world, runId } = await training();
  world.ssm.on(GetParameterCommand).rejects(denied());
  world.s3.failList(...Array.from({ length: 500 }, denied));
  world.s3.mock.rejects(denied());
  await world.ask({ action: 'stop', runId });
  await world.settle();
  expect(world.sagemaker.calls.stop).toBe(1);
  world.end(`research-${runId}-a001`, 'Stopped');
  await world.tick(5);
  expect(await world.ask({ action: 'status', runId })).toMatchObject({ state: 'stopped' });
});

describe('an attempt that fails at its create call', () => {
  test.each([
    ['access', 'AccessDeniedException', 'User is not authorized to perform: iam:PassRole'],
    ['access', 'ValidationException', 'The KMS key is disabled'],
    ['config', 'ValidationException', "VolumeKmsKeyId can't be used with ml.p4d.24xlarge"],
    ['config', 'ValidationException', 'VolumeSizeInGB must be larger'],
  ])('has the class that was decided: %s (%s: %s)', async (failureClass, name, message) => {
    const world = fakeWorld();
    world.sagemaker.failCreate({ error: serviceError(name, message, 400) });
    const runId = await world.launch();
    await world.tick(5);
    const record = await world.store.find(runId);
    expect([record?.state, record?.attempt?.failureClass]).toEqual(['failed', failureClass]);
  });
});

test('a run that is restarted very often tells a person although each attempt makes progress, and waits after many', async () => {
  const { world, runId } = await training();
  for (let attempt = 1; attempt <= 40; attempt++) {
    const name = `research-${runId}-a${String(attempt).padStart(3, '0')}`;
    if (!world.sagemaker.jobs.has(name)) break;
    world.train(name);
    await world.tick(5);
    world.commit(runId, attempt * 10, { attempt });
    world.end(name, 'Failed', 'InternalServerError: a host was lost');
    await world.tick(5);
    await world.tick(5);
  }
  expect(told(world, 'restarted')).toBeGreaterThan(0);
  expect(told(world, 'restarted')).toBeLessThan(4);
  expect(world.sagemaker.jobs.size).toBeLessThanOrEqual(25);
  const waiting = (await world.store.find(runId))?.notBefore ?? 0;
  expect(waiting).toBeGreaterThan(world.now());
});
