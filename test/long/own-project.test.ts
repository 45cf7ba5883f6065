// A platform team's first hour, from the packed package in an empty folder: `slipway init`, and when the package is
// gone, `npm ci`, `npx cdk synth`, `npm test`. The registry is the machine's; what is not in npm's cache is fetched.
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PackedProject, packedPackage } from './support/packed-project';

let folder: string;
let project: string;
let call: (program: string, ...args: string[]) => Promise<string>;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-own-'));
  project = path.join(folder, 'project');
  const tarball = packedPackage(folder);
  const made = await PackedProject.make(project, tarball, '--ci', 'github');
  rmSync(tarball);
  call = made.call.bind(made);
});
afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test('package.json names the tarball in the project, and the lockfile its digest', () => {
  const { dependencies } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8'));
  expect(dependencies.slipway).toMatch(/^file:vendor\/slipway-.*\.tgz$/);
  const { packages } = JSON.parse(readFileSync(path.join(project, 'package-lock.json'), 'utf8'));
  const digest = createHash('sha512')
    .update(readFileSync(path.join(project, dependencies.slipway.slice(5))))
    .digest('base64');
  expect(packages['node_modules/slipway']).toMatchObject({
    resolved: dependencies.slipway,
    integrity: `sha512-${digest}`,
  });
  expect(existsSync(path.join(project, '.github/workflows/slipway.yaml'))).toBe(true);
});

test('npx cdk synth writes the template of the Region, without an account', async () => {
  await call('npx', '--no-install', 'cdk', 'synth', '--quiet');
  const templates = readdirSync(path.join(project, 'cdk.out')).filter((name) => name.endsWith('.template.json'));
  expect(templates).toEqual(['Slipway-training-us-west-2.template.json']);
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
