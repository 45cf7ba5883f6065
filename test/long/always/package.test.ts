// The packed npm package in an empty CDK app: what a user of the library gets, and nothing of this checkout.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../../e2e/support/sandbox';

const APP = `
const { App } = require('aws-cdk-lib');
const { EnvironmentStack, loadEnvironment, resolveEnvironments } = require('slipway');
const file = 'name: packed\\nregions: { us-west-2: {} }\\nnetwork: { availabilityZoneIds: [usw2-az1, usw2-az2] }\\n';
const app = new App({ outdir: 'cdk.out' });
for (const spec of resolveEnvironments(loadEnvironment(file).value))
  new EnvironmentStack(app, 'Packed', { spec, env: { account: '111122223333', region: spec.region } });
app.synth();
`;

/** Names that declarations of exported modules import from other modules, and that the package does not export: declarations keep no private types. */
function unexported(root: string): string[] {
  const index = readFileSync(path.join(root, 'index.d.ts'), 'utf8');
  const names = (list: string) => list.split(',').map((name) => name.replace('type ', '').trim());
  const exported = [...index.matchAll(/export (?:type )?\{([^}]*)\} from '([^']+)'/g)];
  const known = new Set(exported.flatMap(([, list = '']) => names(list)));
  return exported.flatMap(([, , from = '']) => {
    const file = path.join(root, from);
    const text = readFileSync(existsSync(`${file}.d.ts`) ? `${file}.d.ts` : path.join(file, 'index.d.ts'), 'utf8');
    const used = [...text.matchAll(/import (?:type )?\{([^}]*)\} from '\./g)].flatMap(([, list = '']) => names(list));
    return used.filter((name) => name && !known.has(name)).map((name) => `${name} of ${from}`);
  });
}

/** What a platform team fetches; the largest parts are the handlers and the command line with the AWS SDK. */
const MAX_PACKED_BYTES = 2_000_000;

let folder: string;
let packedBytes: number;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-package-'));
  const npm = (args: string[], cwd: string) => execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: 'pipe' });
  const [packed] = JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], ROOT)) as {
    filename: string;
    size: number;
  }[];
  packedBytes = packed?.size ?? 0;
  const { peerDependencies } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    peerDependencies: Record<string, string>;
  };
  // The oldest that are allowed: an app of its own is rarely on the version that this package is built with.
  const cdk = Object.entries(peerDependencies).map(([name, range]) => [name, range.replace('^', '')]);
  writeFileSync(
    path.join(folder, 'package.json'),
    JSON.stringify({
      name: 'empty-app',
      private: true,
      dependencies: { ...Object.fromEntries(cdk), slipway: `file:${packed?.filename}` },
    }),
  );
  npm(['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'], folder);
  writeFileSync(path.join(folder, 'app.js'), APP);
  execFileSync(process.execPath, ['app.js'], { cwd: folder, stdio: 'pipe' });
});
afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test('synthesises an environment with the functions that came with it, bundling nothing', () => {
  const template = JSON.parse(readFileSync(path.join(folder, 'cdk.out', 'Packed.template.json'), 'utf8')) as {
    Resources: Record<string, { Type: string; Properties: Record<string, unknown> }>;
  };
  const resources = Object.values(template.Resources);
  const named = resources.filter((r) => r.Type === 'AWS::Lambda::Function').map((r) => r.Properties.FunctionName);
  expect(named).toEqual(expect.arrayContaining(['slipway-packed-control', 'slipway-packed-reconcile']));
  expect(resources.some((r) => r.Type === 'Custom::SlipwayQuotaPreflight')).toBe(true);
});

test('the driver that it publishes is the one of this checkout', () => {
  const assets = readdirSync(path.join(folder, 'cdk.out')).filter((n) => /^asset\.[0-9a-f]+\.json$/.test(n));
  const archives = assets.map((n) => JSON.parse(readFileSync(path.join(folder, 'cdk.out', n), 'utf8')));
  const names = archives.flatMap((a: { files: { name: string }[] }) => a.files.map((f) => f.name));
  expect(names).toEqual(expect.arrayContaining(['launch.sh', 'slipway_driver/main.py', 'slipway_trainer/trainer.py']));
});

test('it is small', () => {
  expect(packedBytes).toBeGreaterThan(1_000_000);
  expect(packedBytes).toBeLessThan(MAX_PACKED_BYTES);
});

test('every type in the signatures of what it exports is exported too', () => {
  expect(unexported(path.join(folder, 'node_modules/slipway/dist/lib/cdk'))).toEqual([]);
});

/** What the template of an example holds that the example is about. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'own-stack.ts': '-reconcile',
  'environment-files.ts': '-reconcile',
  'existing-vpc.ts': 'subnet-0123456789abcdef1',
  'quota-check.ts': 'Custom::SlipwayQuotaPreflight',
  'existing-roles.ts': 'role/company-training',
  'pipeline.ts': 'AWS::CodePipeline::Pipeline',
};

test('every example is one of them', () => {
  const files = readdirSync(path.join(ROOT, 'docs/library')).filter((file) => file.endsWith('.ts'));
  expect(files.sort()).toEqual(Object.keys(EXAMPLES).sort());
});

describe('apps on the package', () => {
  const slipway = (...args: string[]) =>
    execFileSync(path.join(folder, 'node_modules/.bin/slipway'), args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  const scriptOf = (name: string) => name.replace('.ts', '.js');
  const outputOf = (name: string) => path.join(folder, `cdk.out-${path.basename(name, '.ts')}`);

  /** One program for the compiler and one process for all syntheses: both spend most of their time on reading the CDK library. */
  beforeAll(() => {
    const names = Object.keys(EXAMPLES);
    for (const name of names) cpSync(path.join(ROOT, 'docs/library', name), path.join(folder, name));
    // One environment file says as much about the package as all of them, each of which is synthesised and checked.
    cpSync(path.join(ROOT, 'environments/starter.yaml'), path.join(folder, 'environments/starter.yaml'));
    cpSync(path.join(ROOT, 'runs'), path.join(folder, 'runs'), { recursive: true });
    slipway('init', 'piped', '--pipeline', '--yes', '--json');
    const options = '--module nodenext --target es2022 --strict --types node --outDir . --rootDir . --typeRoots'.split(
      ' ',
    );
    const types = path.join(ROOT, 'node_modules/@types');
    const tsc = path.join(ROOT, 'node_modules/.bin/tsc');
    const sources = [...names, 'piped/bin/app.ts'];
    expect(execFileSync(tsc, [...options, types, ...sources], { cwd: folder, encoding: 'utf8' })).toBe('');
    const play = names.map((name) => `process.env.CDK_OUTDIR = '${outputOf(name)}'; require('./${scriptOf(name)}');`);
    writeFileSync(path.join(folder, 'examples.js'), play.join('\n'));
    const env = { ...process.env, CDK_DEFAULT_ACCOUNT: '111122223333' };
    execFileSync(process.execPath, ['examples.js'], { cwd: folder, env, stdio: 'pipe' });
  });

  test.each(Object.entries(EXAMPLES))('docs/library/%s compiles and synthesises', (name, holds) => {
    const templates = readdirSync(outputOf(name)).filter((file) => file.endsWith('.template.json'));
    expect(templates.length).toBeGreaterThan(0);
    for (const file of templates) expect(readFileSync(path.join(outputOf(name), file), 'utf8')).toContain(holds);
  });

  test('the app of `slipway init --pipeline` compiles and synthesises a stage for each account', () => {
    const project = path.join(folder, 'piped');
    const env = { ...process.env, CDK_OUTDIR: 'cdk.out', CDK_DEFAULT_ACCOUNT: '111122223333' };
    execFileSync(process.execPath, ['bin/app.js'], { cwd: project, env, stdio: 'pipe' });
    const stages = readdirSync(path.join(project, 'cdk.out')).filter((name) => name.startsWith('assembly-'));
    expect(stages.sort()).toEqual(['assembly-SlipwayPipeline-dev', 'assembly-SlipwayPipeline-prod']);
    const pipeline = readFileSync(path.join(project, 'cdk.out/SlipwayPipeline.template.json'), 'utf8');
    expect(pipeline).toContain('AWS::CodePipeline::Pipeline');
    expect(pipeline).toContain('444455556666');
  });

  test('its command finds the files that came with it', () => {
    const { files } = JSON.parse(slipway('init', 'starter', '--json')) as { files: string[] };
    for (const file of files.filter((each) => each.endsWith('.yaml')))
      expect(JSON.parse(slipway('validate', file, '--json'))).toMatchObject({ ok: true });
  });
});

test('only one copy of aws-cdk-lib is installed beside it', () => {
  expect(readdirSync(path.join(folder, 'node_modules', 'slipway'))).not.toContain('node_modules');
});
