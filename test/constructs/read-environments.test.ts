import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readEnvironments } from '../../lib/constructs/read-environments';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-environments-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string) => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
};
const GOOD = 'name: one\nregions: { us-west-2: {}, us-east-1: { quotas: { enforce: warn } } }\n';

test('gives one stack for each region, with the overrides of the region', () => {
  write('one.yaml', GOOD);
  const { environments, problems } = readEnvironments({ folder });
  expect(problems).toEqual([]);
  expect(environments.map(({ spec }) => [spec.name, spec.region, spec.quotas.enforce])).toEqual([
    ['one', 'us-west-2', 'fail'],
    ['one', 'us-east-1', 'warn'],
  ]);
});

test('takes one file where one is named; lock files are no environments', () => {
  const file = write('one.yaml', GOOD);
  write('two.yaml', GOOD.replace('one', 'two'));
  write('one.lock.yaml', 'images: {}\n');
  expect(readEnvironments({ file }).environments).toHaveLength(2);
  expect(readEnvironments({ folder }).environments).toHaveLength(4);
});

test('reads the runs that it names, beside the environment file', () => {
  const file = write('environments/one.yaml', `${GOOD}runs: [{ file: ../runs/base.yaml }]\n`);
  write(
    'runs/base.yaml',
    'name: base\ncode: { source: ./src }\ncompute: { instanceType: ml.p4d.24xlarge, instanceCount: 2 }\n',
  );
  const { environments, problems } = readEnvironments({ file });
  expect(problems).toEqual([]);
  expect(environments[0]?.runs.map((run) => run.name)).toEqual(['base']);
});

test('fails: everything that is wrong with all files, each with its place', () => {
  const bad = write(
    'bad.yaml',
    'name: Bad\nregions: { us-west-2: {} }\nquotas:\n  require:\n    - { instanceType: ml.p4d.24xlarge, count: 0 }\n',
  );
  write('good.yaml', `${GOOD}runs: [{ file: missing.yaml }]\n`);
  const texts = readEnvironments({ folder }).problems.map((p) => p.text);
  expect(texts).toHaveLength(3);
  expect(texts[0]).toContain(`${bad}:1:`);
  expect(texts[1]).toContain(`${bad}:5:`);
  expect(texts[1]).toContain('quotas.require[0].count');
  expect(texts[2]).toBe(`${path.join(folder, 'missing.yaml')}: must be a readable file, got ENOENT; check the path`);
});

test('fails: a folder without environments', () => {
  expect(readEnvironments({ folder }).problems[0]?.text).toMatch(
    /^environments: must be a folder with environment files, got /,
  );
});

describe('rules of environment files', () => {
  const issuesOf = (more: string) =>
    readEnvironments({ file: write('one.yaml', `${GOOD}${more}`) }).problems.map((p) =>
      p.text.replace(/^.*?: (error|warning): /, ''),
    );

  test.each([
    [
      'storage: { fsxLustre: { sizeGiB: 1200, zoneId: usw2-az2 } }\n',
      'storage.fsxLustre.zoneId: must be one of network.availabilityZoneIds, got usw2-az2; write network: { availabilityZoneIds: [usw2-az2, ...] }',
    ],
    [
      'image: { base: cuda }\n',
      'image.base: the full build is not supported yet, got cuda; use base: pytorch-2.13 or smp-2.8.0, or name an image with image.uri',
    ],
    [
      'image: { build: false }\n',
      'image.build: must be true without image.uri, got false; use base: pytorch-2.13 or smp-2.8.0, or name an image with image.uri',
    ],
    [
      'runs: [{ file: x.yaml, submit: on-change }]\n',
      'runs[0].submit: must be manual: submission by a deploy is not supported yet, got on-change; launch it with slipway launch',
    ],
    [
      'network: { packages: wheels }\n',
      'network.wheels: must be given with packages wheels; add wheels: s3://bucket/prefix/',
    ],
  ])('%s', (more, message) => {
    expect(issuesOf(more)).toEqual([message]);
  });
});
