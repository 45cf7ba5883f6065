import { expect, test } from 'vitest';
import { environmentQuotaNeeds, type QuotaNeed, runQuotaNeeds } from '../../../lib/core/quota';
import { BASE, runOf } from '../../support/runs';

const brief = (needs: readonly QuotaNeed[]) => needs.map((n) => [n.code, n.needed, n.kind]);
const run = (compute: object, more: object = {}) => runOf({ ...BASE, compute, ...more });

test('an on-demand run touches type, total, per-job and run time; a type with instance store has no EBS row', () => {
  const needs = runQuotaNeeds(run({ instanceType: 'ml.p4d.24xlarge', instanceCount: 16 }));
  expect(brief(needs)).toEqual([
    ['L-09B4A649', 16, 'pool'],
    ['L-00C91CB5', 16, 'pool'],
    ['L-622CFD70', 16, 'per-job'],
    ['L-33A961FD', 432_000, 'per-job'],
  ]);
  expect(needs[0]).toMatchObject({
    name: 'ml.p4d.24xlarge for training job usage',
    unit: 'instances',
    wantedBy: 'compute.instanceCount',
  });
});

test('a spot run touches the spot rows and no on-demand row', () => {
  const needs = runQuotaNeeds(
    run(
      { instanceType: 'ml.p4d.24xlarge', instanceCount: 2, capacity: 'spot' },
      { limits: { maxRuntimeSeconds: 7200 } },
    ),
  );
  expect(brief(needs)).toEqual([
    ['L-09D56C4F', 2, 'pool'],
    ['L-93958082', 2, 'pool'],
    ['L-DB62C864', 2, 'per-job'],
    ['L-33A961FD', 7200, 'per-job'],
  ]);
});

test('a warm pool adds its own row beside the training row, which a job starts without and an environment needs', () => {
  const needs = runQuotaNeeds(run({ instanceType: 'ml.p4d.24xlarge', instanceCount: 2, keepAliveSeconds: 600 }));
  expect(brief(needs).slice(0, 2)).toEqual([
    ['L-09B4A649', 2, 'pool'],
    ['L-A8827666', 2, 'pool'],
  ]);
  expect(needs.map(({ isOptional }) => isOptional).slice(0, 3)).toEqual([undefined, true, undefined]);
  const kept = run({ instanceType: 'ml.p4d.24xlarge', instanceCount: 2, keepAliveSeconds: 600 });
  expect(environmentQuotaNeeds([], [kept]).find(({ code }) => code === 'L-A8827666')).toMatchObject({ needed: 2 });
  expect(environmentQuotaNeeds([], [kept]).some((need) => 'isOptional' in need)).toBe(false);
});

test('a type without instance store asks for its EBS volume, also when the run names no size', () => {
  const of = (volumeSizeGiB?: number) =>
    runQuotaNeeds(run({ instanceType: 'ml.c5.xlarge', instanceCount: 1, volumeSizeGiB })).find((n) => n.unit === 'GiB');
  expect(of()?.needed).toBe(100);
  expect(of(2000)).toMatchObject({ code: 'L-C5A266EB', needed: 2000, wantedBy: 'compute.volumeSizeGiB' });
  const groups = ['ml.p4d.24xlarge', 'ml.c5.xlarge'].map((type, i) => ({
    name: `g${i}`,
    instanceType: type,
    instanceCount: 1,
  }));
  const asked = (instanceGroups: object[]) => runQuotaNeeds(run({ instanceGroups })).filter((n) => n.unit === 'GiB');
  expect([asked(groups).length, asked(groups.slice(0, 1)).length]).toEqual([1, 0]);
});

test('groups of one type add up, alternatives do not', () => {
  const groups = runQuotaNeeds(
    run({
      instanceGroups: [
        { name: 'a', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
        { name: 'b', instanceType: 'ml.p4d.24xlarge', instanceCount: 1 },
      ],
    }),
  );
  expect(brief(groups).slice(0, 2)).toEqual([
    ['L-09B4A649', 3, 'pool'],
    ['L-00C91CB5', 3, 'pool'],
  ]);
  const choice = runQuotaNeeds(
    run({
      instanceType: 'ml.p4d.24xlarge',
      instanceCount: 2,
      alternatives: [{ instanceType: 'ml.p4de.24xlarge', instanceCount: 4 }],
    }),
  );
  expect(brief(choice).slice(0, 3)).toEqual([
    ['L-09B4A649', 2, 'pool'],
    ['L-D948A761', 4, 'pool'],
    ['L-00C91CB5', 4, 'pool'],
  ]);
});

test('a need names the option that asks for it: the first choice, or the alternative that takes most', () => {
  const wantedBy = (alternatives: object[]) =>
    runQuotaNeeds(run({ instanceType: 'ml.p4d.24xlarge', instanceCount: 2, alternatives }))
      .slice(0, -1)
      .map((need) => need.wantedBy);
  expect(wantedBy([{ instanceType: 'ml.p4de.24xlarge' }])).toEqual([
    'compute.instanceCount',
    'compute.alternatives[0]',
    'compute.instanceCount',
    'compute.instanceCount',
  ]);
  expect(wantedBy([{ instanceType: 'ml.p5.48xlarge' }, { instanceType: 'ml.p4d.24xlarge', instanceCount: 3 }])).toEqual(
    [
      'compute.alternatives[1].instanceCount',
      'compute.alternatives[0]',
      'compute.alternatives[1].instanceCount',
      'compute.alternatives[1].instanceCount',
    ],
  );
});

test('a processing run touches the processing rows', () => {
  const needs = runQuotaNeeds(
    runOf({
      name: 'tokens',
      kind: 'processing',
      code: { source: 'builtin-tokenize' },
      compute: { instanceType: 'ml.c5.xlarge', instanceCount: 3 },
      output: { s3: 's3://{dataBucket}/tokens/' },
    }),
  );
  expect(brief(needs).map(([code]) => code)).toEqual([
    'L-486519E6',
    'L-F311B08F',
    'L-A5D63399',
    'L-EA47BDD3',
    'L-D7BEE2A3',
  ]);
});

test('a type without a known code keeps its name, so that it can be looked up', () => {
  const [type] = runQuotaNeeds(run({ instanceType: 'ml.trn2.48xlarge', instanceCount: 1 }));
  expect(type).toMatchObject({ code: undefined, name: 'ml.trn2.48xlarge for training job usage' });
});

test('a job of groups asks for them; spare instances are named beside the count they raise', () => {
  const first = (compute: object) => runQuotaNeeds(run(compute))[0];
  const groups = [{ name: 'a', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 }];
  expect(first({ instanceGroups: groups })).toMatchObject({ needed: 2, wantedBy: 'compute.instanceGroups' });
  const spared = { instanceType: 'ml.p4d.24xlarge', instanceCount: 2, spareInstances: 1 };
  expect(first(spared)).toMatchObject({ needed: 3, wantedBy: 'compute.instanceCount, compute.spareInstances' });
  const other = (more: object) =>
    runQuotaNeeds(run({ ...spared, alternatives: [{ instanceType: 'ml.p4de.24xlarge', ...more }] }))[1];
  expect(other({})).toMatchObject({ needed: 3, wantedBy: 'compute.alternatives[0], compute.spareInstances' });
  expect(other({ instanceCount: 5 })).toMatchObject({
    needed: 6,
    wantedBy: 'compute.alternatives[0].instanceCount, compute.spareInstances',
  });
});

test('of required counts the largest job counts, with the option that asks for it', () => {
  const perJob = (...counts: number[]) =>
    environmentQuotaNeeds(
      counts.map((count) => ({ instanceType: 'ml.p4d.24xlarge', count, usage: 'training' as const })),
    ).find(({ code }) => code === 'L-622CFD70');
  expect(perJob(2, 5)).toMatchObject({ needed: 5, wantedBy: 'quotas.require[1]' });
  expect(perJob(5, 2)).toMatchObject({ needed: 5, wantedBy: 'quotas.require[0]' });
});

test('required counts stand side by side; a run counts alone, so the larger of both is needed', () => {
  const needs = environmentQuotaNeeds(
    [
      { instanceType: 'ml.p4d.24xlarge', count: 8, usage: 'training' },
      { instanceType: 'ml.c5.xlarge', count: 4, usage: 'training' },
    ],
    [run({ instanceType: 'ml.p4d.24xlarge', instanceCount: 10 })],
  );
  expect(brief(needs)).toEqual([
    ['L-09B4A649', 10, 'pool'],
    ['L-00C91CB5', 12, 'pool'],
    ['L-622CFD70', 10, 'per-job'],
    ['L-E2BB44FE', 4, 'pool'],
    ['L-33A961FD', 432_000, 'per-job'],
  ]);
});

test('maxInstancesPerRun spreads a required count over several jobs; a warm pool needs its own row only', () => {
  const many = environmentQuotaNeeds([{ instanceType: 'ml.p4d.24xlarge', count: 64, usage: 'training' }], [], 16);
  expect(many.find((n) => n.kind === 'per-job')?.needed).toBe(16);
  const warm = environmentQuotaNeeds([{ instanceType: 'ml.p4d.24xlarge', count: 4, usage: 'warm-pool' }]);
  expect(brief(warm)).toEqual([['L-A8827666', 4, 'pool']]);
});
