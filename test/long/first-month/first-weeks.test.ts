// A platform team's first weeks on the embedded AWS, from the packed package in an empty folder: a company's network and boundary, two accounts,
// templates for a review, a quota that is too small, three teams, and an upgrade under a live run.
import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../../lib/sandbox/testing';
import { type CompanyAccount, REGION } from '../support/company-account';
import { Month, P4D, STACK, TEAMS } from '../support/month';
import { pack } from '../support/packed-project';
import { CHROMIUM, problemsOf } from '../support/screenshot';

let month: Month;
let dev: CompanyAccount;
let prod: CompanyAccount;

beforeAll(async () => {
  month = await Month.begin('111111111111', 0);
  dev = await month.account('111111111111');
  prod = await month.account('222222222222');
});
afterAll(() => month?.end());

interface Template {
  Resources: Record<string, { Type: string; Properties: Record<string, unknown>; DeletionPolicy?: string }>;
}

test('the templates that the security team reviews have the boundary, path and prefix, and no network of their own', async () => {
  month.write(dev, 'ml.p4d.24xlarge');
  await month.project.call(month.program('cdk'), 'synth', '--quiet');
  const { Resources } = JSON.parse(
    readFileSync(path.join(month.project.folder, `cdk.out/${STACK}.template.json`), 'utf8'),
  ) as Template;
  const all = Object.values(Resources);
  const roles = all.filter(({ Type }) => Type === 'AWS::IAM::Role').map(({ Properties }) => Properties);
  expect(roles.length).toBeGreaterThan(20);
  for (const { Path, RoleName, PermissionsBoundary } of roles)
    expect([Path, JSON.stringify(RoleName).includes('acme-'), JSON.stringify(PermissionsBoundary)]).toEqual([
      '/ml/',
      true,
      expect.stringContaining(':policy/ml-boundary'),
    ]);
  expect(all.filter(({ Type }) => /^AWS::EC2::(VPC|Subnet|SecurityGroup)$/.test(Type))).toEqual([]);
  for (const { Type, Properties, DeletionPolicy } of all.filter(({ Type: t }) => t === 'AWS::S3::Bucket')) {
    expect([Type, DeletionPolicy]).toEqual([Type, 'RetainExceptOnCreate']);
    expect(Properties.Tags).toContainEqual({ Key: 'CostCenter', Value: '1234' });
  }
});

test('fails: options that contradict each other are refused before a stack is made', async () => {
  month.write(dev, 'ml.p4d.24xlarge', {
    sections: 'storage: { retain: false, adopt: true, buckets: { data: other }, kmsKeyArn: alias/own }\n',
  });
  const { code, said } = await month.deploy(dev);
  expect([code, said]).toEqual([1, expect.stringContaining('storage.kmsKeyArn: must be the ARN of a KMS key')]);
  expect(await dev.stacks()).toEqual([]);
});

test('fails: a boundary that forbids what the roles need is named before a stack is made', async () => {
  month.write(dev, 'ml.p4d.24xlarge');
  await month.project.call(month.program('cdk'), 'synth', '--quiet');
  const asked = async () => {
    // What it says of network and boundary: its quotas are too small as well, so that it refuses in any case.
    const { stdout } = await month.slipway(dev.admin, 'preflight', 'environments/training.yaml');
    const { checks, issues } = JSON.parse(stdout);
    const about = issues.filter(({ path: at }: { path: string }) => /^(network|iam)\b/.test(at));
    const named = checks.filter(({ name }: { name: string }) => /^(existing network|permissions boundary)$/.test(name));
    return [
      ...named.map(({ name, verdict }: { name: string; verdict: string }) => `${name}: ${verdict}`),
      ...about.map(({ message }: { message: string }) => message),
    ];
  };
  expect(await asked()).toEqual(['existing network: ok', 'permissions boundary: ok']);
  const { restore } = await dev.narrowBoundary('sns:Publish');
  const denied = /must allow sns:Publish \(statements? .*\bNotify\b.*, got .*ml-boundary, which denies that; remove/;
  expect(await asked()).toEqual([
    ...['existing network: ok', 'permissions boundary: failed'],
    expect.stringMatching(denied),
  ]);
  await restore();
  expect(await asked()).toEqual(['existing network: ok', 'permissions boundary: ok']);
  expect(await dev.stacks()).toEqual([]);
});

test('a quota that is too small refuses the first deploy, and its increase cures it', async () => {
  month.write(dev, 'ml.p4d.24xlarge');
  for (const account of [dev, prod]) await month.bootstrap(account);
  const { code, said } = await month.deploy(dev);
  expect([code, said]).toEqual([1, expect.stringContaining(`(${P4D}): limit 0, needed 2; requests`)]);
  expect(await dev.buckets()).toEqual([]);
  expect(await adminOf(month.sandbox).decideIncreases(REGION, 'APPROVED', P4D)).toHaveLength(1);
  await month.deployed(dev);
  expect(await dev.buckets()).toHaveLength(4);
});

test('the same project deploys into the second account', async () => {
  month.write(prod, 'ml.m5.large');
  await month.deployed(prod);
  expect(await prod.buckets()).toHaveLength(4);
  await month.completes(prod, 'nlp', 'in-prod');
  month.write(dev, 'ml.p4d.24xlarge');
});

test('each of three teams trains, and sees its own runs alone', async () => {
  for (const team of TEAMS) await month.completes(dev, team, `first-${team}`);
  for (const team of TEAMS) {
    const { runs } = await month.asks(dev, team, 'list');
    expect(runs.map(({ runId }: { runId: string }) => runId)).toEqual([`first-${team}`]);
  }
});

test.skipIf(!CHROMIUM)('the pages of these weeks open without an error, on a screen and on a phone', async () => {
  const page = (name: string) => path.join(month.folder, `${name}.html`);
  for (const [account, name] of [
    [dev, 'dev'],
    [prod, 'prod'],
  ] as const) {
    const run = account === dev ? 'first-nlp' : 'in-prod';
    const nlp = await account.as('-nlp-researcher');
    await month.answer(nlp, 'report', run, '--environment', 'training/nlp', '--html', page(`report-${name}`));
    await month.answer(account.admin, 'team', 'training', '--html', page(`team-${name}`));
  }
  expect(problemsOf(['report-dev', 'team-dev', 'report-prod', 'team-prod'].map(page))).toEqual([]);
});

/** The next version of the package: another driver and another control function under another number. */
function nextVersion(): string {
  execFileSync('tar', ['-xzf', month.tarball, '-C', month.folder]);
  const unpacked = path.join(month.folder, 'package');
  const manifest = path.join(unpacked, 'package.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/"version": "[^"]+"/, '"version": "99.0.0"'));
  appendFileSync(path.join(unpacked, 'containers/driver/slipway_driver/main.py'), '\n# the next version\n');
  appendFileSync(path.join(unpacked, 'dist/handlers/control/index.mjs'), '\n// the next version\n');
  return pack(unpacked, month.folder);
}

test('an upgrade of the package goes through under a live run, which keeps its job and its driver', async () => {
  await month.starts(dev, 'nlp', 'steady');
  const before = await month.asks(dev, 'nlp', 'status', 'steady');
  const driver = async () => (await dev.objects('artifacts', 'drivers/')).sort();
  const drivers = await driver();
  await month.project.call(
    'npm',
    'install',
    '--save-exact',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    nextVersion(),
  );
  const installed = path.join(month.project.folder, 'node_modules/slipway/package.json');
  expect(JSON.parse(readFileSync(installed, 'utf8')).version).toBe('99.0.0');
  const { code, said } = await month.cdk(dev, 'diff');
  expect([code, said.includes('AWS::Lambda::Function')]).toEqual([0, true]);
  const kept = await dev.identities(STACK);
  expect(Object.keys(kept).length).toBeGreaterThan(20);
  await month.deployed(dev);
  expect(await dev.identities(STACK)).toEqual(kept);
  expect((await driver()).length).toBeGreaterThan(drivers.length);
  const after = await month.asks(dev, 'nlp', 'status', 'steady');
  expect(after).toMatchObject({
    state: 'running',
    attempts: [{ trainingJobName: before.attempts[0].trainingJobName }],
  });
  await month.stops(dev, 'nlp', 'steady');
  await month.completes(dev, 'nlp', 'upgraded');
});
