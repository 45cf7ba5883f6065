import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clusterUsdPerHour } from '../../../lib/core/admission';
import { hostCount, requestedGroupsOf, worldSize } from '../../../lib/core/config/resolve-run';
import { smokeOverrides } from '../../../lib/core/config/smoke';
import { jobFile } from '../../../lib/core/job/job-file';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { listCapacityOptions, policyOf } from '../../../lib/core/lifecycle/capacity-options';
import { layoutOfRun } from '../../../lib/core/planner/run/layout-of-run';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { runQuotaNeeds } from '../../../lib/core/quota';
import { validRunFiles } from '../../support/arbitrary-runs';
import { BASE, DESCRIPTOR, issuesOf, planOf, runOf } from '../../support/runs';

const PLAN = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine';
const file = (compute: object = {}) => ({
  ...BASE,
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 128, steps: 1000 },
  code: { source: 'builtin' },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4, spareInstances: 2, ...compute },
});
const config = (compute: object) => trainingJobRequest(planOf(runOf(file(compute)))).ResourceConfig;

describe('the job asks for the spare hosts too', () => {
  test('of one type', () => {
    expect(config({})).toMatchObject({ InstanceType: 'ml.p5.48xlarge', InstanceCount: 6 });
  });

  test('of alternatives, with one count for all', () => {
    expect(config({ alternatives: [{ instanceType: 'ml.p5en.48xlarge', trainingPlanArn: PLAN }] })).toEqual({
      InstancePreferences: [
        { InstanceType: 'ml.p5.48xlarge' },
        { InstanceType: 'ml.p5en.48xlarge', TrainingPlanArns: [PLAN] },
      ],
      InstanceCount: 6,
    });
  });

  test('of alternatives that have counts of their own', () => {
    expect(config({ alternatives: [{ instanceType: 'ml.p4d.24xlarge', instanceCount: 8 }] })).toEqual({
      InstancePreferences: [
        { InstanceType: 'ml.p5.48xlarge', InstanceCount: 6 },
        { InstanceType: 'ml.p4d.24xlarge', InstanceCount: 10 },
      ],
    });
  });
});

test('job.json says how many of its hosts wait', () => {
  expect(jobFile(planOf(runOf(file()))).spareInstances).toBe(2);
  expect(jobFile(planOf(runOf(BASE))).spareInstances).toBe(0);
});

test('quotas must hold them, for each alternative too', () => {
  const own = 'compute.instanceCount, compute.spareInstances';
  const alternative = 'compute.alternatives[0].instanceCount, compute.spareInstances';
  const needs = runQuotaNeeds(
    runOf(file({ keepAliveSeconds: 600, alternatives: [{ instanceType: 'ml.p4d.24xlarge', instanceCount: 8 }] })),
  );
  expect(needs.filter((n) => n.unit === 'instances').map((n) => [n.name, n.needed, n.wantedBy])).toEqual([
    ['ml.p5.48xlarge for training job usage', 6, own],
    ['ml.p4d.24xlarge for training job usage', 10, alternative],
    ['ml.p5.48xlarge for training warm pool usage', 6, own],
    ['ml.p4d.24xlarge for training warm pool usage', 10, alternative],
    ['Number of instances across all training jobs', 10, alternative],
    ['Maximum number of instances per training job', 10, alternative],
  ]);
});

test('they are paid for: plan, question before the launch, and record', () => {
  const prices = { 'ml.p5.48xlarge': 10 };
  const run = runOf(file());
  const plan = planRun(run, { region: 'us-west-2', prices });
  expect(plan).toMatchObject({ usd: { perHour: 60 }, gpus: 32 });
  expect(clusterUsdPerHour(run, { ...DESCRIPTOR, prices })?.usd).toBe(60);
  expect(listCapacityOptions(run, 'us-west-2', prices)).toMatchObject([
    { instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 6 }], usdPerHour: 60 },
  ]);
  expect(policyOf(run, 'us-west-2').spareInstances).toBe(2);
  expect(policyOf(runOf(BASE), 'us-west-2').spareInstances).toBe(0);
});

test('fails: more hosts than the environment allows, counted with the spare ones', () => {
  const descriptor = { ...DESCRIPTOR, guardrails: { maxInstancesPerRun: 5 } };
  expect(issuesOf(file(), 'guardrails/sizes', { descriptor }).map((i) => i.message)).toEqual([
    'compute.instanceCount: must be at most 5 in environment research, spare hosts among them, got 6; ask the platform team, or launch into another environment',
  ]);
});

test('only the others train', () => {
  const run = runOf(file());
  expect(worldSize(run)).toBe(32);
  expect(layoutOfRun(run)).toMatchObject({ layout: { nodes: 4 } });
  expect(runOf(file({ instanceCount: 1, spareInstances: 1 })).network.efa).toBe('off');
});

test('a small run has none', () => {
  expect(smokeOverrides(runOf(file()), 'account')).toContain('compute.spareInstances=');
});

test('without them every request, need and price is what it was', () => {
  fc.assert(
    fc.property(validRunFiles, (valid) => {
      const without = runOf(valid);
      const none = runOf({ ...valid, compute: { ...valid.compute, spareInstances: 0 } });
      expect(hostCount(requestedGroupsOf(without.compute))).toBe(valid.compute.instanceCount);
      expect(trainingJobRequest(planOf(none))).toEqual(trainingJobRequest(planOf(without)));
      expect(runQuotaNeeds(none)).toEqual(runQuotaNeeds(without));
    }),
    { numRuns: 100 },
  );
});
