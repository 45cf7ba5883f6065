import { describe, expect, test } from 'vitest';
import { resolveEnvironments } from '../../../lib/core/config/environment-file';
import { isEnvironmentFile, loadDescriptor, loadEnvironment, loadRun } from '../../../lib/core/config/load';
import { worldSize } from '../../../lib/core/config/resolve-run';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const MINIMAL = 'name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.p4d.24xlarge }\n';

describe('loadRun', () => {
  test('fills in the defaults of the contract', () => {
    const run = loadRun(MINIMAL).value;
    expect(run).toMatchObject({
      kind: 'training',
      compute: { instanceCount: 1, capacity: 'on-demand', keepAliveSeconds: 0 },
      distribution: {
        library: 'custom',
        launcher: 'torchrun',
        collectives: 'nccl',
        contract: 'entrypoint',
        processesPerHost: 8,
      },
      checkpoints: { mode: 'none', keep: 3, intervalMinutes: 'auto' },
      limits: { maxRuntimeSeconds: 432_000, maxAttempts: 20, retryInternalErrors: 5 },
      network: { efa: 'off' },
      image: { kind: 'environment' },
    });
  });

  test('efa is required by default on EFA types with more than one instance', () => {
    expect(runOf(BASE).network.efa).toBe('required');
    expect(runOf({ ...BASE, compute: { instanceType: 'ml.g5.xlarge', instanceCount: 4 } }).network.efa).toBe('off');
  });

  test('a spot run without maxWaitSeconds waits a day longer than it runs', () => {
    expect(runOf({ ...BASE, compute: { ...BASE.compute, capacity: 'spot' } }).limits.maxWaitSeconds).toBe(518_400);
  });

  test('a version that looks like a number stays as written', () => {
    const run = loadRun(`${MINIMAL}image: { kind: dlc, version: 2.10 }\n`).value;
    expect(run?.image.version).toBe('2.10');
  });

  test('only the groups that take part count for the world size', () => {
    const run = runOf({
      ...BASE,
      compute: {
        instanceGroups: [
          { name: 'gpu', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
          { name: 'cpu', instanceType: 'ml.c5.18xlarge', instanceCount: 4 },
        ],
      },
      distribution: { library: 'fsdp', instanceGroups: ['gpu'] },
    });
    expect(worldSize(run)).toBe(16);
  });

  test('fails: every mistake at once, in the one form, with the nearest key', () => {
    const { value, issues } = loadRun('name: A\ncompute: { instanceCount: 0 }\ndistrbution: {}\n');
    expect(value).toBeUndefined();
    expect(issues.map((i) => i.message)).toEqual([
      'name: must be 1-32 lower-case letters, digits or inner hyphens, got A; correct the value',
      'code: must be given (a section); add code',
      'compute.instanceCount: must be at least 1, got 0; use at least 1',
      expect.stringMatching(/^distrbution: must be a known option, got distrbution; use distribution/),
    ]);
  });

  test('fails: what is not YAML names line and column', () => {
    expect(loadRun('name: [a\ncode: b').issues[0]?.message).toMatch(/line \d+, column \d+/);
  });

  test('fails: a list, a word or nothing is no run file', () => {
    for (const text of ['- a', 'word', '', '42']) expect(loadRun(text).issues.length).toBeGreaterThan(0);
  });

  test('of a value that --set has replaced, and of an override that is none, are unknown', () => {
    const { positionOf } = loadRun(MINIMAL, ['compute.instanceType=ml.p4d.24xlarge']);
    expect(positionOf(['compute', 'instanceType'])).toBeUndefined();
    expect(positionOf(['compute'])).toEqual(loadRun(MINIMAL).positionOf(['compute']));
    expect(loadRun(MINIMAL, ['x..y=1']).positionOf([])).toBeUndefined();
  });

  test('positions point at the value', () => {
    const { positionOf } = loadRun(MINIMAL);
    expect(positionOf(['compute', 'instanceType'])).toEqual({ line: 3, column: 26 });
  });
});

describe('--set', () => {
  test('sets, adds and removes before validation', () => {
    const run = loadRun(MINIMAL, [
      'compute.instanceCount=4',
      'tags.project=llama',
      'image.kind=dlc',
      'image.version=2.10',
      'data[0].channel=train',
      'data[0].s3=s3://{dataBucket}/x/',
    ]).value;
    expect(run?.compute.instanceCount).toBe(4);
    expect(run?.tags).toEqual({ project: 'llama' });
    expect(run?.image.version).toBe('2.10');
    expect(run?.data).toEqual([{ channel: 'train', s3: 's3://{dataBucket}/x/' }]);
    expect(loadRun(MINIMAL, ['code.source=']).issues[0]?.path).toBe('code.source');
  });

  test.each(['bogus=', 'limits.maxCostUSD=', 'compute.bogus='])(
    'fails: %s removes no option of the section',
    (override) => {
      expect(loadRun(MINIMAL, [override]).issues).toMatchObject([
        { rule: 'schema/unknown-key', path: override.slice(0, -1) },
      ]);
    },
  );

  test.each(['limits.maxCostUsd=', 'tags.project=', 'data[3]='])('%s may remove what is not there', (override) => {
    expect(loadRun(MINIMAL, [override]).issues).toEqual([]);
  });

  test.each(['noequals', '=x', 'a..b=1', '__proto__.x=1', 'name.first=1'])('fails: %s is no override', (override) => {
    expect(loadRun(MINIMAL, [override]).issues[0]?.rule).toBe('schema/set');
  });
});

describe('environment files', () => {
  const FILE =
    'name: research\nregions: { us-west-2: {}, us-east-1: { quotas: { enforce: warn } } }\nteams: { nlp: {} }\n';

  test('overrides of a region win over the sections', () => {
    const file = loadEnvironment(FILE).value;
    expect(file && resolveEnvironments(file).map((e) => [e.region, e.quotas.enforce, e.network.mode])).toEqual([
      ['us-west-2', 'fail', 'vpc-locked'],
      ['us-east-1', 'warn', 'vpc-locked'],
    ]);
  });

  test('are told from run files by content', () => {
    expect(isEnvironmentFile(FILE)).toBe(true);
    expect(isEnvironmentFile(MINIMAL)).toBe(false);
  });
});

test('a descriptor keeps strangers and says what is missing', () => {
  expect(loadDescriptor(JSON.stringify({ ...DESCRIPTOR, newer: 1 })).value).toMatchObject({
    name: 'research',
    newer: 1,
  });
  expect(loadDescriptor('{').issues[0]?.rule).toBe('schema/json');
  expect(loadDescriptor('{"schemaVersion":1}').issues.map((i) => i.path)).toContain('executionRoleArn');
});
