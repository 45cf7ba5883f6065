// Examples of docs/library on the embedded AWS: each is deployed as it stands, but for the names of what a company has already, which is made
// first. Of the pipeline the stacks of each stage are deployed, in the order of the stages and into their accounts, since MiniStack has no CodePipeline; the
// launcher over existing roles is synthesised only (test/long/always/package.test.ts).
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { PYTHON, ROOT, type TestSandbox, testSandbox } from '../e2e/support/sandbox';

const ACCOUNT = '111122223333';
const REGION = 'us-west-2';
/** ml.p5.48xlarge for training job usage. */
const P5 = 'L-82E1C851';
/** With those of instances over all training jobs and of one. */
const QUOTAS = { [P5]: 0, 'L-00C91CB5': 100, 'L-622CFD70': 100 };
const AWS = path.join(path.dirname(PYTHON), 'aws');
const CDK = path.join(ROOT, 'node_modules/.bin/cdk');
const TSX = path.join(ROOT, 'node_modules/.bin/tsx');

let sandbox: TestSandbox;
let folder: string;
beforeAll(async () => {
  sandbox = await testSandbox({ accountId: ACCOUNT, quotas: QUOTAS });
  // Within the package, so that `slipway` is this one.
  mkdirSync(path.join(ROOT, '.slipway/examples'), { recursive: true });
  folder = mkdtempSync(path.join(ROOT, '.slipway/examples/'));
  await sandbox.call(CDK, ['bootstrap', `aws://${ACCOUNT}/${REGION}`, '--app', '']);
}, 180_000);
afterAll(async () => {
  if (folder) rmSync(folder, { recursive: true, force: true });
  await sandbox?.end();
});

async function aws<T>(...words: string[]): Promise<T> {
  return JSON.parse((await sandbox.call(AWS, [...words, '--region', REGION, '--output', 'json'])) || '{}') as T;
}

/** Deploys an example with other words in the place of some of its own. */
async function deploy(name: string, instead: Readonly<Record<string, string>> = {}) {
  let text = readFileSync(path.join(ROOT, 'docs/library', `${name}.ts`), 'utf8');
  for (const [from, to] of Object.entries(instead)) {
    expect(text, from).toContain(from);
    text = text.replaceAll(from, to);
  }
  const file = path.join(folder, `${name}.ts`);
  writeFileSync(file, text);
  const words = ['--app', `${TSX} ${file}`, '--output', path.join(folder, `${name}.out`)];
  const { code, stdout, stderr } = await sandbox.tryCall(CDK, [
    ...['deploy', '--all', '--method=direct', '--require-approval', 'never'],
    ...words,
  ]);
  return { code, said: `${stdout}${stderr}`.replace(/\s+/g, ' ').slice(-3000) };
}

async function deployed(name: string, instead?: Readonly<Record<string, string>>): Promise<void> {
  const { code, said } = await deploy(name, instead);
  expect([code, code === 0 ? '' : said]).toEqual([0, '']);
}

/** Names of the environments that somebody can launch into. */
async function teamsOf(environment: string): Promise<string[]> {
  const name = `/slipway/environments/${environment}`;
  const { Parameter } = await aws<{ Parameter: { Value: string } }>('ssm', 'get-parameter', '--name', name);
  return Parameter.Value.split(',');
}

test('the quota check alone gates a stack of your own until the limit is there', async () => {
  const { code, said } = await deploy('quota-check');
  expect([code, said]).toEqual([1, expect.stringContaining('limit 0, needed 4')]);
  await adminOf(sandbox).setQuota(REGION, P5, 4);
  await deployed('quota-check');
}, 300_000);

test('the launcher over your own VPC and stack', async () => {
  // MiniStack knows no rules of a security group for itself, and has no default group that the CDK's custom resource could empty.
  await deployed('own-stack', {
    "jobs.connections.allowInternally(ec2.Port.allTraffic(), 'EFA and NCCL');": '',
    'natGateways: 0,': 'natGateways: 0, restrictDefaultSecurityGroup: false,',
  });
  expect(await teamsOf('platform')).toEqual(['nlp', 'speech']);
}, 300_000);

test('a whole environment in an existing VPC', async () => {
  const { Vpc } = await aws<{ Vpc: { VpcId: string } }>('ec2', 'create-vpc', '--cidr-block', '10.9.0.0/16');
  const subnet = async (n: number) => {
    const at = ['--availability-zone', `${REGION}${'ab'[n]}`, '--cidr-block', `10.9.${n}.0/24`];
    const { Subnet } = await aws<{ Subnet: { SubnetId: string } }>(
      'ec2',
      'create-subnet',
      '--vpc-id',
      Vpc.VpcId,
      ...at,
    );
    return Subnet.SubnetId;
  };
  const group = ['--group-name', 'jobs', '--description', 'jobs', '--vpc-id', Vpc.VpcId];
  const { GroupId } = await aws<{ GroupId: string }>('ec2', 'create-security-group', ...group);
  const instead = {
    'vpc-0123456789abcdef0': Vpc.VpcId,
    'subnet-0123456789abcdef0': await subnet(0),
    'subnet-0123456789abcdef1': await subnet(1),
    'sg-0123456789abcdef0': GroupId,
  };
  const { code, said } = await deploy('existing-vpc', instead);
  const [, advice = ''] =
    /add a gateway endpoint: (aws ec2 create-vpc-endpoint [\w .-]+)/.exec(said.replace(/\s+/g, ' ')) ?? [];
  expect([code, said]).toEqual([1, expect.stringContaining('network.existing.subnetIds: must reach S3')]);
  // What the refusal says is run as it is printed.
  await aws(...advice.trim().split(' ').slice(1));
  await deployed('existing-vpc', instead);
  expect(await teamsOf('shared')).toEqual(['nlp', 'speech']);
}, 300_000);

test('environment files in an app of your own', async () => {
  mkdirSync(path.join(folder, 'environments'), { recursive: true });
  writeFileSync(path.join(folder, 'environments/files.yaml'), `name: files\nregions: { ${REGION}: {} }\n`);
  await deployed('environment-files', { "folder: 'environments'": `folder: '${path.join(folder, 'environments')}'` });
  expect(await teamsOf('files')).toEqual(['default']);
}, 300_000);

test('the stages of the pipeline, one account after the other', async () => {
  const name = 'pipeline';
  const text = readFileSync(path.join(ROOT, 'docs/library', `${name}.ts`), 'utf8');
  mkdirSync(path.join(folder, 'stages'), { recursive: true });
  writeFileSync(path.join(folder, 'stages/staged.yaml'), `name: staged\nregions: { ${REGION}: {} }\n`);
  const file = path.join(folder, `${name}.ts`);
  writeFileSync(file, text.replace("folder: 'environments'", `folder: '${path.join(folder, 'stages')}'`));
  const out = path.join(folder, `${name}.out`);
  await sandbox.call(CDK, ['synth', '--quiet', '--app', `${TSX} ${file}`, '--output', out]);
  const { Resources } = JSON.parse(readFileSync(path.join(out, 'TrainingPipeline.template.json'), 'utf8')) as {
    Resources: Record<string, { Type: string; Properties: { Stages?: { Name: string }[] } }>;
  };
  const pipeline = Object.values(Resources).find(({ Type }) => Type === 'AWS::CodePipeline::Pipeline');
  const stages = (pipeline?.Properties.Stages ?? [])
    .map(({ Name }) => Name)
    .filter((stage) => /^(dev|prod)$/.test(stage));
  expect(stages).toEqual(['dev', 'prod']);
  const seen: string[] = [];
  for (const [stage, account] of [
    ['dev', ACCOUNT],
    ['prod', '444455556666'],
  ] as const) {
    const of = async (program: string, ...args: string[]) => {
      const { code, stdout, stderr } = await sandbox.tryCall(program, args, { AWS_ACCESS_KEY_ID: account });
      expect([stage, code, code === 0 ? '' : `${stdout}${stderr}`.slice(-3000)]).toEqual([stage, 0, '']);
      return stdout;
    };
    await of(CDK, 'bootstrap', `aws://${account}/${REGION}`, '--app', '');
    const assembly = path.join(out, `assembly-TrainingPipeline-${stage}`);
    const words = ['deploy', '--all', '--method=direct', '--require-approval', 'never', '--app', assembly];
    await of(CDK, ...words);
    const asked = ['ssm', 'get-parameter', '--name', '/slipway/environments/staged/default', '--region', REGION];
    const { Parameter } = JSON.parse(await of(AWS, ...asked, '--output', 'json'));
    seen.push(JSON.parse(Parameter.Value).account);
  }
  expect(seen).toEqual([ACCOUNT, '444455556666']);
}, 600_000);
