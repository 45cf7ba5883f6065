import { describe, expect, test } from 'vitest';
import { checkRun, RULES } from '../../../lib/core/rules';
import { BASE, DESCRIPTOR, issuesOf, runOf } from '../../support/runs';

const p4d = (count: number) => ({ instanceType: 'ml.p4d.24xlarge', instanceCount: count });
const v2 = (parameters: object, count = 2) => ({
  ...BASE,
  image: { kind: 'smp', version: '2.5.1' },
  compute: p4d(count),
  distribution: { library: 'smp-v2', parameters },
});
const v1 = (parameters: object, count = 2) => ({
  ...BASE,
  image: { kind: 'dlc', version: '1.13.1' },
  compute: p4d(count),
  distribution: { library: 'smp-v1', processesPerHost: 8, parameters },
});

test('every rule has a unique id', () => {
  expect(new Set(RULES.map((r) => r.id)).size).toBe(RULES.length);
  for (const rule of RULES) {
    expect(rule.id).toMatch(/^[a-z0-9-]+\/[a-z0-9-]+$/);
  }
});

test('a plain run has no errors', () => {
  expect(checkRun(runOf(BASE)).filter((i) => i.level === 'error')).toEqual([]);
});

describe('smp-v2', () => {
  test('shard degrees that are no powers of two are fine', () => {
    expect(issuesOf(v2({ hybrid_shard_degree: 40, tensor_parallel_degree: 2 }, 10), 'smp-v2/degrees')).toEqual([]);
  });

  test('fails: a product that does not divide the world size, with the nearest choices', () => {
    expect(issuesOf(v2({ hybrid_shard_degree: 32 }), 'smp-v2/degrees')).toEqual([
      {
        rule: 'smp-v2/degrees',
        level: 'error',
        path: 'distribution.parameters.hybrid_shard_degree',
        message:
          'distribution.parameters.hybrid_shard_degree: must make hybrid_shard_degree x tensor_parallel_degree x expert_parallel_degree a divisor of the world size 16, got 32 x 1 x 1 = 32; use a shard degree of 1, 2, 4, 8 or 16, or another instance count',
      },
    ]);
  });

  test.each([
    [{ pipeline_parallel_degree: 2 }, /SMP v2 has no pipeline parallelism/],
    [{ tensor_parallel_degree: 'x' }, /whole number/],
    [{ activation_loading_horizon: 0 }, /at least 1/],
    [{ sm_activation_offloading: 'yes' }, /true or false/],
    [{ context_parallel_degree: 4, hybrid_shard_degree: 2 }, /at most hybrid_shard_degree 2/],
  ])('fails: %j', (parameters, message) => {
    expect(
      issuesOf(v2(parameters), 'smp-v2/')
        .filter((i) => i.level === 'error')
        .map((i) => i.message),
    ).toEqual([expect.stringMatching(message)]);
  });

  test('fails: the same setting in two places with two values', () => {
    const file = { ...v2({ sm_activation_offloading: true }), training: { activationOffload: false } };
    expect(issuesOf(file, 'smp-v2/offload-conflict')).toHaveLength(1);
  });

  test('fails: smddp with tensor parallelism and shard degree 1', () => {
    const file = v2({ hybrid_shard_degree: 1, tensor_parallel_degree: 8 });
    expect(
      issuesOf({ ...file, distribution: { ...file.distribution, collectives: 'smddp' } }, 'smp-v2/smddp'),
    ).toHaveLength(1);
  });
});

describe('smp-v1', () => {
  test('the reference configurations pass', () => {
    const reference = v1(
      {
        ddp: true,
        pipeline_parallel_degree: 2,
        tensor_parallel_degree: 8,
        shard_optimizer_state: true,
        prescaled_batch: true,
        microbatches: 4,
        active_microbatches: 2,
      },
      32,
    );
    expect(issuesOf(reference, 'smp-v1/').filter((i) => i.level === 'error')).toEqual([]);
  });

  test.each([
    [{ tensor_parallel_degree: 4 }, 'smp-v1/tensor-needs-ddp'],
    [{ ddp: true, tensor_parallel_degree: 16 }, 'smp-v1/tensor-within-node'],
    [{ ddp: true, sharded_data_parallel_degree: 8, pipeline_parallel_degree: 2 }, 'smp-v1/sharded-data-parallel'],
    [{ ddp: true, sharded_data_parallel_degree: 8, shard_optimizer_state: true }, 'smp-v1/sharded-data-parallel'],
    [{ bf16: true }, 'smp-v1/precision'],
    [{ auto_partition: false }, 'smp-v1/partitioning'],
    [{ pipeline_parallel_degree: 2, default_partition: 2, auto_partition: false }, 'smp-v1/partitioning'],
    [{ pipeline: 'fast' }, 'smp-v1/parameters'],
    [{ ddp_port: 1 }, 'smp-v1/ddp-options'],
    [{ pipeline_parallel_degree: 3 }, 'smp-v1/degrees'],
    [{ partitions: 2, pipeline_parallel_degree: 4 }, 'smp-v1/partitions-twice'],
  ])('fails: %j', (parameters, rule) => {
    expect(
      issuesOf(v1(parameters), 'smp-v1/')
        .filter((i) => i.level === 'error')
        .map((i) => i.rule),
    ).toContain(rule);
  });
});

describe('acknowledge', () => {
  const managed = { ...BASE, compute: { ...p4d(2), capacity: 'spot' } };

  test('turns a judgement error into a warning that prints the reason', () => {
    const found = issuesOf(
      { ...managed, acknowledge: [{ rule: 'checkpoints/spot-without', reason: 'ten minutes' }] },
      'checkpoints/spot-without',
    );
    expect(found).toMatchObject([
      { level: 'warning', message: expect.stringContaining('(acknowledged: ten minutes)') },
    ]);
  });

  test.each([
    [{ rule: 'smddp/frozzen', reason: 'x' }, 'acknowledge/unknown-rule'],
    [{ rule: 'checkpoints/spot-without', reason: ' ' }, 'acknowledge/reason'],
    [{ rule: 'compute/instance-type', reason: 'x' }, 'acknowledge/not-allowed'],
  ])('fails: %j', (entry, rule) => {
    expect(issuesOf({ ...managed, acknowledge: [entry] }, 'acknowledge/').map((i) => i.rule)).toEqual([rule]);
  });
});

describe('guardrails', () => {
  const context = {
    descriptor: {
      ...DESCRIPTOR,
      guardrails: {
        allowedInstanceTypes: ['ml.p5*.48xlarge'],
        maxInstancesPerRun: 1,
        allowRemoteDebug: false,
        requireNetworkIsolation: true,
        allowedImages: ['dlc'],
        maxRuntimeSeconds: 3600,
      },
    },
  };

  test('fails: everything that the environment does not allow, at once', () => {
    const found = issuesOf({ ...BASE, observability: { remoteDebug: true } }, 'guardrails/', context);
    expect(found.map((i) => i.path)).toEqual([
      'compute.instanceType',
      'compute.instanceCount',
      'limits.maxRuntimeSeconds',
      'image.kind',
      'network.isolation',
      'observability.remoteDebug',
    ]);
  });

  const REGISTRY = '111122223333.dkr.ecr.us-west-2.amazonaws.com';
  test.each([
    [`${REGISTRY}/team`, `${REGISTRY}/team:1`, true],
    [`${REGISTRY}/team`, `${REGISTRY}/team@sha256:${'a'.repeat(64)}`, true],
    [`${REGISTRY}/team`, `${REGISTRY}/team/app:1`, true],
    [`${REGISTRY}/team`, `${REGISTRY}/team`, true],
    [`${REGISTRY}/team`, `${REGISTRY}/team-evil:1`, false],
    [`${REGISTRY}/team/`, `${REGISTRY}/team/app:1`, true],
    [`${REGISTRY}/team/`, `${REGISTRY}/team:1`, false],
    [`${REGISTRY}/team:1`, `${REGISTRY}/team:10`, false],
    [REGISTRY, `${REGISTRY}/any:1`, true],
    [REGISTRY, `${REGISTRY}.evil.com/any:1`, false],
    ['registry.company.com', 'registry.company.com:5000/any:1', false],
    ['registry.company.com:5000', 'registry.company.com:5000/any:1', true],
    ['registry.company.com:50', 'registry.company.com:5000/any:1', false],
  ])('the image prefix %s allows %s: %s', (prefix, uri, isAllowed) => {
    const descriptor = { ...DESCRIPTOR, guardrails: { allowedImages: [prefix] } };
    const found = issuesOf({ ...BASE, image: { kind: 'uri', uri } }, 'guardrails/images', { descriptor });
    expect(found.map((i) => i.path)).toEqual(isAllowed ? [] : ['image.uri']);
  });

  test('what the descriptor leaves out says nothing', () => {
    expect(issuesOf(BASE, 'guardrails/', { descriptor: DESCRIPTOR })).toEqual([]);
  });
});

describe('data', () => {
  const lustre = { channel: 'shared', fsxLustre: { fileSystemId: '{fsx}', directoryPath: '/fsx', access: 'rw' } };

  test('{fsx} needs an environment that has a file system', () => {
    const file = { ...BASE, data: [lustre] };
    const found = issuesOf(file, 'data/foreign-file-system', { descriptor: { ...DESCRIPTOR, fileSystems: undefined } });
    expect(found.map((i) => i.message)).toEqual([
      'data[0].fsxLustre.fileSystemId: must be a file system of the environment, got {fsx}; ask the platform team to add it to storage.fileSystems',
    ]);
    const fileSystems = { fsx: { id: 'fs-0123456789abcdef0' } };
    expect(issuesOf(file, 'data/foreign-file-system', { descriptor: { ...DESCRIPTOR, fileSystems } })).toEqual([]);
  });

  test('a channel must not take the name of one that model.weights adds', () => {
    const data = [{ channel: 'weights', s3: 's3://{dataBucket}/w/' }];
    const model = { preset: 'llama3-8b', weights: 's3://{dataBucket}/llama/' };
    expect(issuesOf({ ...BASE, data, model }, 'data/channels')[0]?.message).toMatch(
      /must not be driver, job, code or weights/,
    );
    expect(issuesOf({ ...BASE, data }, 'data/channels')).toEqual([]);
  });
});
