import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { INSTANCE_TYPES } from '../../lib/core/catalog/instances/instances';
import { runCli } from '../support/run-cli';

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);
const read = (...names: string[]) => readFileSync(at(...names), 'utf8');

/** A project with the files of this tree, and a tarball in place of what packing it would make: test/long/own-project.test.ts packs. */
const init = (name: string, ...words: string[]) =>
  runCli('init', at(name), '--package', at('given/slipway-1.2.3.tgz'), '--no-lockfile', ...words);

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-init-'));
  mkdirSync(at('given'));
  writeFileSync(at('given/slipway-1.2.3.tgz'), 'packed');
  writeFileSync(at('given/slipway_client-1.2.3-py3-none-any.whl'), 'wheel');
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each([['--yes'], ['--yes', '--run']])('fails: a place where no folder can be made (%s)', async (...words) => {
  const { code, stderr } = await runCli('init', '/proc/slipway/x', ...words);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      'init: must be a folder that can be written, got /proc/slipway/x (ENOENT); specify another folder',
    ),
  ]);
});

test('fails: a file where the folder must be', async () => {
  const { code, stderr } = await runCli('init', at('given/slipway-1.2.3.tgz'), '--yes');
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/init: must be a folder that can be written, got .* \(ENOTDIR\)/),
  ]);
});

describe('a project', () => {
  test('has exact versions, one app over the environment files, and files that are valid', async () => {
    const { code, stdout } = await init('My Training', '--json');
    expect(code).toBe(0);
    const { files } = JSON.parse(stdout) as { files: string[] };
    expect(files.map((file) => path.relative(at('My Training'), file)).sort()).toEqual([
      '.gitignore',
      'README.md',
      'bin/app.ts',
      'cdk.json',
      'environments/training.yaml',
      'package.json',
      'runs/first-run.yaml',
      'runs/smoke/hello.py',
      'runs/smoke/run.yaml',
      'runs/text/run.yaml',
      'runs/text/write_text.py',
      'runs/tokenize.yaml',
      'test/environment.test.ts',
      'tsconfig.json',
      'vendor/slipway-1.2.3.tgz',
      'vendor/slipway_client-1.2.3-py3-none-any.whl',
    ]);
    const { name, dependencies, devDependencies } = JSON.parse(read('My Training/package.json'));
    expect(name).toBe('my-training');
    expect(Object.keys(dependencies).sort()).toEqual(['aws-cdk-lib', 'constructs', 'slipway']);
    const { slipway, ...others } = dependencies;
    expect(slipway).toBe('file:vendor/slipway-1.2.3.tgz');
    expect(read('My Training/vendor/slipway-1.2.3.tgz')).toBe('packed');
    for (const version of Object.values({ ...others, ...devDependencies })) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    for (const file of files.filter((each) => /\b(environments|runs)\b.*\.yaml$/.test(each)))
      expect(JSON.parse((await runCli('validate', file, '--json')).stdout)).toMatchObject({ ok: true });
    // Editors find the schemas of the installed package.
    const schema = '# yaml-language-server: $schema=../node_modules/slipway/schema';
    expect(read('My Training/runs/smoke/run.yaml').split('\n')[0]).toBe(
      '# yaml-language-server: $schema=../../node_modules/slipway/schema/run.schema.json',
    );
    expect(read('My Training/runs/first-run.yaml').split('\n')[0]).toBe(`${schema}/run.schema.json`);
    expect(read('My Training/environments/training.yaml').split('\n')[0]).toBe(`${schema}/environment.schema.json`);
  });

  test('region, team and instance type stand wherever they belong', async () => {
    const more = ['--region', 'eu-central-1', '--team', 'vision', '--instance-type', 'ml.g5.12xlarge', '--yes'];
    expect((await init('eu', ...more, '--ci', 'github')).code).toBe(0);
    const environment = parse(read('eu/environments/training.yaml'));
    expect(Object.keys(environment.regions)).toEqual(['eu-central-1']);
    expect(environment.teams).toEqual({ vision: { principals: [] } });
    expect(environment.quotas.require).toEqual([{ instanceType: 'ml.g5.12xlarge', count: 2, usage: 'training' }]);
    expect(environment.guardrails.allowedInstanceTypes).toContain('ml.g5.12xlarge');
    const run = parse(read('eu/runs/first-run.yaml'));
    expect(run.compute.instanceType).toBe('ml.g5.12xlarge');
    expect(run.model.preset).not.toBe('llama3-8b');
    expect(read('eu/test/environment.test.ts')).toContain("'eu-central-1'");
    expect(read('eu/test/environment.test.ts')).toContain("'training/vision'");
    expect(read('eu/README.md')).toContain('--environment training/vision --region eu-central-1');
    const pipeline = parse(read('eu/.github/workflows/slipway.yaml'));
    expect(pipeline.permissions['id-token']).toBe('write');
    expect(JSON.stringify(pipeline.jobs)).toContain('"aws-region":"eu-central-1"');
    // Of --no-lockfile.
    for (const file of ['README.md', '.github/workflows/slipway.yaml']) {
      expect(read(`eu/${file}`)).toContain('npm install');
      expect(read(`eu/${file}`)).not.toMatch(/npm ci|cache: npm/);
    }
  });

  test.each(['a #1', '50%', 'what?'])('fails: a folder %s, in whose tests Vite finds nothing', async (name) => {
    const { code, stderr } = await init(name, '--yes');
    expect([code, stderr]).toEqual([2, expect.stringContaining('must be a folder whose path has no #, % and ?, got')]);
  });

  test('with --pipeline the app deploys the accounts of its environment file', async () => {
    const { code, stdout } = await init('piped', '--pipeline', '--yes', '--json');
    expect(code).toBe(0);
    const { files } = JSON.parse(stdout) as { files: string[] };
    expect(files.filter((file) => file.includes('/bin/')).map((file) => path.basename(file))).toEqual(['app.ts']);
    expect(read('piped/bin/app.ts')).toContain('slipwayPipeline(new App()');
    expect(parse(read('piped/environments/training.yaml')).accounts).toEqual({
      dev: '111122223333',
      prod: '444455556666',
    });
    expect(read('piped/README.md')).toContain('## The pipeline');
    expect(parse(read('piped/environments/training.yaml')).network.availabilityZoneIds).toEqual([
      'usw2-az1',
      'usw2-az2',
    ]);
    expect((await runCli('validate', at('piped/environments/training.yaml'), '--json')).code).toBe(0);
  });

  test('the GitLab pipeline signs in with a token and no stored secret', async () => {
    await init('gl', '--ci', 'gitlab', '--yes');
    const pipeline = parse(read('gl/.gitlab-ci.yml'));
    expect(pipeline['.aws'].id_tokens.AWS_TOKEN.aud).toBe('https://gitlab.com');
    expect(pipeline.deploy.script).toContain('npx slipway verify training --region us-west-2 --level read --yes');
  });

  test('a version names a package in a registry, and nothing is copied', async () => {
    const { stdout } = await runCli('init', at('named'), '--package', '1.2.3', '--no-lockfile', '--json');
    expect(JSON.parse(read('named/package.json')).dependencies.slipway).toBe('1.2.3');
    expect(stdout).not.toContain('vendor');
  });

  test('fails: what is neither a file nor a version', async () => {
    const { code, stderr } = await runCli('init', at('nofile'), '--package', 'nofile', '--yes');
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/--package: must be a packed tarball or a version, got nofile, which is no file here;/),
    ]);
    expect(existsSync(at('nofile'))).toBe(false);
  });

  test('fails: a folder is no package', async () => {
    const { code, stderr } = await runCli('init', at('folder'), '--package', at('given'), '--yes');
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /--package: must be a packed tarball or a version, got the folder .*; run npm run pack in it/,
      ),
    ]);
  });

  test('the next commands are quoted and name the wheel', async () => {
    const { stderr } = await init("it's mine", '--yes');
    const quoted = `'${folder}/it'\\''s mine'`;
    expect(stderr).toContain(`next: cd ${quoted} && npm install && npm test`);
    expect(stderr).toMatch(/pip install '.*vendor\/slipway_client-1\.2\.3-py3-none-any\.whl'/);
  });
});

test('--run writes run files alone', async () => {
  const { stdout } = await runCli('init', at('run'), '--run', '--json');
  const files = JSON.parse(stdout).files as string[];
  expect(files[0]).toBe(at('run/runs/first-run.yaml'));
  expect(files.every((file) => file.startsWith(at('run/runs/')))).toBe(true);
});

test('every GPU type gets a first run that fits, or a refusal', async () => {
  const types = INSTANCE_TYPES.filter(({ accelerator }) => accelerator?.kind === 'gpu').map(({ name }) => name);
  const refused: string[] = [];
  for (const type of types) {
    const { code } = await runCli('init', at(type), '--run', '--instance-type', type, '--json');
    if (code !== 0) refused.push(type);
    else {
      const checked = await runCli('validate', at(type, 'runs/first-run.yaml'), '--json');
      expect([type, JSON.parse(checked.stdout)]).toMatchObject([type, { ok: true }]);
    }
  }
  expect(types.length - refused.length).toBeGreaterThan(20);
  for (const type of refused) expect(type).toMatch(/^ml\.(p2|p3|g4dn|p6e)/);
});

describe('wrong usage is exit 2 and writes nothing', () => {
  test.each([
    [['--region', 'us-west-9'], /--region: must be a region with SageMaker, got us-west-9; use .*us-west-2/],
    [['--team', 'NLP'], /--team: must be 1-12 lower-case letters or digits/],
    [['--instance-type', 'ml.p5.49xlarge'], /--instance-type: must be a SageMaker training instance type/],
    [['--instance-type', 'ml.m5.large'], /--instance-type: must have NVIDIA GPUs/],
    [
      ['--ci', 'github', '--pipeline'],
      /--ci: must be absent with --pipeline, which deploys on its own, got github; omit/,
    ],
    [['--ci', 'jenkins'], /--ci: must be github or gitlab, got jenkins/],
  ])('fails: %j', async (args, message) => {
    const { code, stderr } = await runCli('init', at('wrong'), '--yes', ...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(() => read('wrong/package.json')).toThrow(/ENOENT/);
  });

  test('all of them at once', async () => {
    const { stderr } = await runCli('init', at('wrong'), '--team', 'NLP', '--ci', 'x', '--yes');
    expect(stderr).toMatch(/--team: [^\n]*\n.*--ci: /);
  });

  test('fails: a file that is there is never overwritten', async () => {
    await init('twice', '--yes');
    const { code, stderr } = await init('twice', '--yes');
    expect(code).toBe(2);
    expect(stderr).toMatch(/must not contain package\.json, cdk\.json.* yet/);
    mkdirSync(at('locked'));
    writeFileSync(at('locked/package-lock.json'), '{}');
    expect((await runCli('init', at('locked'), '--yes')).stderr).toMatch(
      /locked: must not contain package-lock\.json yet/,
    );
    expect((await init('locked', '--yes')).code).toBe(0);
  });
});
