// A platform team's first hour, from the packed package in an empty folder: `slipway init`, `npm install`, `npx cdk synth`, `npm test`.
// The registry is the machine's; what is not in npm's cache is fetched.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT } from '../e2e/support/sandbox';

const run = promisify(execFile);

let folder: string;
let project: string;
/** Programs as a new user calls them: no credentials, no Region, no configuration of this machine but npm's cache. */
const call = async (program: string, ...args: string[]): Promise<string> => {
  const { AWS_PROFILE: _, AWS_REGION: __, AWS_DEFAULT_REGION: ___, ...env } = process.env;
  const none = {
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
  };
  const options = { cwd: project, env: { ...env, ...none, CI: '' }, maxBuffer: 1 << 26 };
  return (await run(program, args, options)).stdout;
};

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-own-'));
  project = path.join(folder, 'project');
  mkdirSync(project);
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [packed] = JSON.parse(execFileSync('npm', pack, { cwd: ROOT, encoding: 'utf8' })) as { filename: string }[];
  const tarball = path.join(folder, packed?.filename ?? '');
  await call(
    'npx',
    '--yes',
    '--prefer-offline',
    '--package',
    tarball,
    'slipway',
    'init',
    '.',
    '--ci',
    'github',
    '--yes',
  );
  await call('npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
  // MiniStack is fetched once for all tests of this working tree.
  for (const at of [ROOT, project]) mkdirSync(path.join(at, '.slipway'), { recursive: true });
  mkdirSync(path.join(ROOT, '.slipway/venv'), { recursive: true });
  symlinkSync(path.join(ROOT, '.slipway/venv'), path.join(project, '.slipway/venv'));
});
afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test('package.json names the tarball that the command came from', () => {
  const { dependencies } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8'));
  expect(dependencies.slipway).toMatch(/^file:\.\.\/slipway-.*\.tgz$/);
  expect(existsSync(path.join(project, '.github/workflows/slipway.yaml'))).toBe(true);
});

test('npx cdk synth writes the template of the Region, without an account', async () => {
  await call('npx', '--no-install', 'cdk', 'synth', '--quiet');
  const templates = readdirSync(path.join(project, 'cdk.out')).filter((name) => name.endsWith('.template.json'));
  expect(templates).toEqual(['Slipway-research-us-west-2.template.json']);
});

test('its types hold', async () => {
  expect(await call('npm', 'run', '--silent', 'types')).toBe('');
});

test('npm test deploys it into the embedded AWS and runs a small job', async () => {
  const report = path.join(folder, 'report.json');
  await call('npm', 'test', '--', '--reporter=json', `--outputFile=${report}`).catch((error: Error) => {
    throw new Error(existsSync(report) ? readFileSync(report, 'utf8') : error.message);
  });
  expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ numPassedTests: 2, numFailedTests: 0 });
});
