import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readEnvironments } from '../../lib/cdk/read-environments';

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

test('gives one stack for each region, with the overrides of the region', async () => {
  write('one.yaml', GOOD);
  const { environments, problems } = await readEnvironments({ folder });
  expect(problems).toEqual([]);
  expect(environments.map(({ spec }) => [spec.name, spec.region, spec.quotas.enforce])).toEqual([
    ['one', 'us-west-2', 'fail'],
    ['one', 'us-east-1', 'warn'],
  ]);
});

test('takes one file where one is named; lock files are no environments', async () => {
  const file = write('one.yaml', GOOD);
  write('two.yaml', GOOD.replace('one', 'two'));
  write('one.lock.yaml', 'schema: 1\nbases: {}\n');
  expect((await readEnvironments({ file })).environments).toHaveLength(2);
  expect((await readEnvironments({ folder })).environments).toHaveLength(4);
});

test('reads the runs that it names, beside the environment file', async () => {
  const file = write('environments/one.yaml', `${GOOD}runs: [{ file: ../runs/base.yaml }]\n`);
  write(
    'runs/base.yaml',
    'name: base\ncode: { source: ./src }\ncompute: { instanceType: ml.p4d.24xlarge, instanceCount: 2 }\n',
  );
  mkdirSync(path.join(folder, '.git'));
  const { environments, problems } = await readEnvironments({ file });
  expect(problems).toEqual([]);
  expect(environments[0]?.runs.map((run) => run.name)).toEqual(['base']);
});

test('fails: everything that is wrong with all files, each with its place', async () => {
  const bad = write(
    'bad.yaml',
    'name: Bad\nregions: { us-west-2: {} }\nquotas:\n  require:\n    - { instanceType: ml.p4d.24xlarge, count: 0 }\n',
  );
  write('good.yaml', `${GOOD}runs: [{ file: missing.yaml }]\n`);
  const texts = (await readEnvironments({ folder })).problems.map((p) => p.text);
  expect(texts).toHaveLength(3);
  expect(texts[0]).toContain(`${bad}:1:`);
  expect(texts[1]).toContain(`${bad}:5:`);
  expect(texts[1]).toContain('quotas.require[0].count');
  expect(texts[2]).toBe(
    `${path.join(folder, 'good.yaml')}:3:16: error: runs[0].file: must be a file that exists, got ${path.join(folder, 'missing.yaml')}; check the path`,
  );
});

test('fails: two files that make the same stack', async () => {
  write('one.yaml', GOOD);
  write('two.yaml', 'name: one\nregions: { us-east-1: {} }\n');
  const { problems, environments } = await readEnvironments({ folder });
  expect(environments).toEqual([]);
  expect(problems.map((p) => p.text)).toEqual([
    `${path.join(folder, 'two.yaml')}: error: name: must be another name than that of ${path.join(folder, 'one.yaml')} in us-east-1, got one; rename one, or deploy one with -c environment=FILE`,
  ]);
});

test('fails: a base that a region has no image of, unless it is locked', async () => {
  const file = write('one.yaml', 'name: one\nregions: { us-gov-west-1: {} }\nimage: { base: smp-2.8.0 }\n');
  expect((await readEnvironments({ file })).problems.map((p) => p.text)).toEqual([
    expect.stringContaining('image.base: must have a digest for us-gov-west-1 in '),
  ]);
  write(
    'one.lock.yaml',
    `schema: 1\nbases: { us-gov-west-1: { smp-2.8.0: { image: "111122223333.dkr.ecr.us-gov-west-1.amazonaws.com/smp:1", digest: "sha256:${'a'.repeat(64)}", resolvedAt: "2026-11-21" } } }\n`,
  );
  expect((await readEnvironments({ file })).problems).toEqual([]);
});

test('fails: a folder without environments', async () => {
  expect((await readEnvironments({ folder })).problems[0]?.text).toMatch(
    /^environments: must be a folder with environment files, got /,
  );
});

describe('rules of environment files', () => {
  const issuesOf = async (more: string) => {
    const { problems } = await readEnvironments({ file: write('one.yaml', `${GOOD}${more}`) });
    return problems.map((p) => p.text.replace(/^.*?: (error|warning): /, ''));
  };

  test.each([
    [
      'storage: { fsxLustre: { sizeGiB: 1200, zoneId: usw2-az2 } }\n',
      'storage.fsxLustre.zoneId: must be one of network.availabilityZoneIds, got usw2-az2; write network: { availabilityZoneIds: [usw2-az2, ...] }',
    ],
    [
      'image: { build: false }\n',
      'image.build: must be true without image.uri, got false; remove it, or set image.uri',
    ],
    [
      'network: { packages: wheels }\n',
      'network.wheels: must be set with packages wheels; add wheels: s3://bucket/prefix/',
    ],
  ])('%s', async (more, message) => {
    expect(await issuesOf(more)).toEqual([message]);
  });
});

describe('the lock file', () => {
  const DIGEST = `sha256:${'a'.repeat(64)}`;
  const locked = (base: string, image: string, region = 'us-west-2') =>
    `schema: 1\nbases: { ${region}: { ${base}: { image: "${image}", digest: "${DIGEST}", resolvedAt: "2026-11-21" } } }\n`;
  const basesOf = async (file: string) =>
    (await readEnvironments({ file })).environments.map(({ spec, baseImageUri }) => [spec.region, baseImageUri]);

  test('names the base by its digest in the regions that it has', async () => {
    const file = write('one.yaml', GOOD);
    write('one.lock.yaml', locked('pytorch-2.13', '763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13'));
    expect(await basesOf(file)).toEqual([
      ['us-west-2', `763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch@${DIGEST}`],
      ['us-east-1', undefined],
    ]);
  });

  test('fails: cuda without a digest in every region', async () => {
    const file = write('one.yaml', `${GOOD}image: { base: cuda }\n`);
    write('one.lock.yaml', locked('cuda', '111122223333.dkr.ecr.us-west-2.amazonaws.com/cuda:1'));
    const { problems, environments } = await readEnvironments({ file });
    expect(environments).toEqual([]);
    expect(problems.map((p) => p.text)).toEqual([
      `${file}:3:16: error: image.base: must have a digest for us-east-1 in ${file.replace('.yaml', '.lock.yaml')}, got cuda; run slipway preflight ${file} --lock --base <ECR image with its tag>`,
    ]);
  });

  test.each([
    [
      'a digest that is none',
      locked('cuda', '111122223333.dkr.ecr.us-west-2.amazonaws.com/cuda:1').replace('sha256:', 'sha1:'),
    ],
    ['an image without a tag', locked('cuda', '111122223333.dkr.ecr.us-west-2.amazonaws.com/cuda')],
    ['another schema', 'schema: 2\nbases: {}\n'],
  ])('fails: %s', async (_, text) => {
    const file = write('one.yaml', GOOD);
    const lock = write('one.lock.yaml', text);
    const { problems, environments } = await readEnvironments({ file });
    expect(environments).toEqual([]);
    expect(problems[0]?.text).toMatch(/^.*one\.lock\.yaml:\d+:\d+: error: /);
    expect(problems[0]?.text).toContain(lock);
  });
});

describe('a run that the deploy submits', () => {
  const RUN =
    'name: base\ncode: { source: builtin }\nmodel: { preset: llama3-8b }\ntraining: { globalBatchSize: 16, microBatchSize: 1, sequenceLength: 4096, steps: 10 }\ndata: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]\ncompute: { instanceType: ml.p4d.24xlarge, instanceCount: 2 }\nlimits: { maxRuntimeSeconds: 3600 }\n';
  const read = (entry: string, run = RUN, more = '') => {
    write('base.yaml', run);
    return readEnvironments({ file: write('one.yaml', `${GOOD}${more}runs: [{ file: base.yaml, ${entry} }]\n`) });
  };
  const errorsOf = async (...given: Parameters<typeof read>) =>
    (await read(...given)).problems.filter((p) => p.level === 'error').map((p) => p.text.replace(/^.*?: error: /, ''));

  test('goes to its region and the only team, as its file stands', async () => {
    const { environments, problems } = await read('submit: on-change, region: us-east-1');
    expect(problems.filter((p) => p.level === 'error')).toEqual([]);
    expect(environments.map(({ spec, submissions }) => [spec.region, submissions.length])).toEqual([
      ['us-west-2', 0],
      ['us-east-1', 1],
    ]);
    expect(environments[1]?.submissions[0]).toMatchObject({ team: 'default', runFile: RUN });
    expect(environments[1]?.submissions[0]?.code).toBeUndefined();
  });

  test('brings the archive of its code', async () => {
    write('src/train.py', 'print(1)\n');
    const { environments } = await read(
      'submit: on-change, region: us-east-1',
      RUN.replace('source: builtin', 'source: ./src, entryPoint: train.py').replace(/model:.*\n/, ''),
    );
    expect(environments[1]?.submissions[0]?.code?.sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each([
    [
      'two runs of one name',
      'submit: on-change, region: us-east-1 }, { file: ./base.yaml, submit: on-change, region: us-east-1',
      '',
      'runs[1].file: must have a run name other than that of runs[0], with submit: on-change in the same region, got ./base.yaml (base); rename the run, or list it once',
    ],
    [
      'a run that the guardrails refuse',
      'submit: on-change, region: us-east-1',
      'guardrails: { maxInstancesPerRun: 1 }\n',
      'compute.instanceCount: must be at most 1 in environment one, got 2; ask the platform team, or launch into another environment',
    ],
    [
      'a region that the environment does not have',
      'submit: manual, region: eu-west-1',
      '',
      "runs[0].region: must be one of the environment's regions, got eu-west-1; write region: us-west-2 or us-east-1",
    ],
  ])('fails: %s, once', async (_, entry, more, message) => {
    expect(await errorsOf(entry, RUN, more)).toEqual([message]);
  });

  test('the same run goes to two regions', async () => {
    const twice = 'submit: on-change, region: us-east-1 }, { file: base.yaml, submit: on-change, region: us-west-2';
    expect((await read(twice)).environments.map(({ submissions }) => submissions.length)).toEqual([1, 1]);
  });

  test('manual submits nothing', async () => {
    expect((await read('submit: manual')).environments.flatMap((e) => e.submissions)).toEqual([]);
  });

  test.each([
    [
      'no region of several',
      'submit: on-change',
      RUN,
      '',
      /runs\[0\].region: must be one of the environment's regions/,
    ],
    [
      'another environment',
      'submit: on-change, region: us-east-1',
      `${RUN}environment: two\n`,
      '',
      /environment: must be one team of environment one .* got two; write environment: one\/default/,
    ],
    [
      'a team of several that is not named',
      'submit: on-change, region: us-east-1',
      RUN,
      'teams: { nlp: {}, speech: {} }\n',
      /environment: must be one team .*one\/nlp or one\/speech/,
    ],
    [
      'a run that its rules refuse',
      'submit: on-change, region: us-east-1',
      RUN.replace('instanceCount: 2', 'instanceCount: 3'),
      '',
      /training.globalBatchSize: /,
    ],
  ])('fails: %s', async (_, entry, run, more, expected) => {
    expect((await errorsOf(entry, run, more)).join()).toMatch(expected);
  });
});

describe('the examples of the repository', () => {
  test('can all be synthesised together: no two make the same stack', async () => {
    const { problems, environments } = await readEnvironments({ folder: 'environments' });
    expect(problems.filter(({ level }) => level === 'error')).toEqual([]);
    expect(new Set(environments.map(({ spec }) => `${spec.name} ${spec.region}`)).size).toBe(environments.length);
  });

  test('cdk.json names the one that plain cdk commands read, and a folder given beside it wins', async () => {
    const { context } = JSON.parse(readFileSync('cdk.json', 'utf8')) as { context: { environment: string } };
    const byDefault = await readEnvironments({ file: context.environment });
    expect(byDefault.environments.map(({ spec }) => spec.name)).toEqual(['research', 'research']);
    const all = await readEnvironments({ file: context.environment, folder: 'environments' });
    expect(all.environments.length).toBeGreaterThan(byDefault.environments.length);
  });
});
