import { expect, test } from 'vitest';
import { loadRun } from '../../../../lib/core/config/load';
import type { RunSpec } from '../../../../lib/core/config/run-spec';
import { planData } from '../../../../lib/core/planner/run/data-plan';

function runWith(channel: string, instanceType = 'ml.p5.48xlarge'): RunSpec {
  const text = `name: a\ncode: { source: builtin }\nmodel: { preset: llama3-8b }\ncompute: { instanceType: ${instanceType}, instanceCount: 4 }\ndata: [{ channel: train, s3: "s3://bucket/tt/"${channel} }]\n`;
  const { value, issues } = loadRun(text);
  if (!value) throw new Error(JSON.stringify(issues));
  return value;
}
const speed = { tokensPerSecond: 1024 ** 2, tokens: 64 * 1024 ** 3, dataRanks: 32 };

test('the size, the rate and the shards of a dataset that every reader can share alike', () => {
  const data = planData(runWith(', inputMode: FastFile'), speed);
  // Llama 3 has more than 65,536 tokens: four bytes each.
  expect(data).toMatchObject({
    datasetGiB: 256,
    readMiBPerSecond: 4,
    getRequestsPerSecond: 0.5,
  });
  expect(data?.shards).toEqual({ count: 1024, sizeMiB: 256 });
  expect(data?.advice).toEqual([
    'write the tokens as 1024 shards of about 256 MiB, so that all readers get the same number',
  ]);
});

test('hosts are the readers under ShardedByS3Key', () => {
  const data = planData(runWith(', s3DataDistribution: ShardedByS3Key'), { ...speed, tokens: 1024 ** 3 });
  expect(data?.shards).toEqual({ count: 16, sizeMiB: 256 });
});

test('what to change: a large copy, small files, too many reads of one prefix', () => {
  expect(planData(runWith(', inputMode: File'), speed)?.advice[1]).toMatch(
    /^use inputMode FastFile: File copies 256 GiB to every instance before the first step \(it would fit the local NVMe\)/,
  );
  expect(planData(runWith(', inputMode: FastFile'), { ...speed, tokens: 1e6 })?.advice).toEqual([
    'write the tokens as 1 shards of about 4 MiB, which is too little for one each of 32 readers',
    'use inputMode File: the data is small, and FastFile wants files above 50 MB',
  ]);
  const fast = { ...speed, tokensPerSecond: 2e10 };
  expect(planData(runWith(', inputMode: FastFile'), fast)?.advice[1]).toMatch(/^spread the shards over 2 prefixes/);
});

test('without an end there is a rate and no size; without a train channel nothing', () => {
  expect(planData(runWith(''), { ...speed, tokens: null })).toMatchObject({
    datasetGiB: null,
    shards: null,
    advice: [],
  });
  const run = runWith('');
  expect(planData({ ...run, data: [] }, speed)).toBeUndefined();
});
