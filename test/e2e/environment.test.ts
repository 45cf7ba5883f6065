// One environment on the embedded AWS with IAM enforced (signatures, TLS), through the same programs that a platform team and a researcher
// use: every call is made under the role that makes it on AWS. At the end all decisions are held against the statements of the roles.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  DescribeTrainingJobCommand,
  type DescribeTrainingJobResponse,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ANSWERS } from '../../lib/core/contracts/answers';
import { adminOf, eventually } from '../../lib/sandbox/testing';
import { sha256 } from '../../lib/shared/archive/archive';
import { drawnByScript } from '../support/drawn-by-script';
import { attacksOfATeam } from './roles/attacks';
import { callsOfRoles } from './roles/calls';
import { decisionsOfRoles } from './roles/decisions';
import { type Deployed, deployedSandbox } from './support/deployed';
import { PYTHON, ROOT } from './support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: fail, require: [{ instanceType: ml.m5.xlarge, count: 2 }] }
runs: [{ file: runs/registered.yaml, submit: on-change }]
teams:
  default: { principals: ["arn:aws:iam::000000000000:root"], data: ["demo-tokens/"], kmsKey: own }
  other: { principals: ["arn:aws:iam::000000000000:root"] }
access: { auditors: ["arn:aws:iam::000000000000:root"] }
`;
const REGISTERED = `name: registered
environment: e2e/default
code: { source: ./src, entryPoint: hello.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;
const COMPARE_PY = `import sys, json
rate = float(sys.argv[sys.argv.index("--rate") + 1])
for step in (1, 2, 3):
    print("slipway " + json.dumps({"event": "step", "step": step, "loss": 1 / rate / step, "tokensPerSecondPerGpu": 100 * rate}), flush=True)
`;
/** Codes of what the runs below need: p4d, m5.xlarge, its warm pools, totals, per job. */
const QUOTAS = { 'L-09B4A649': 64, 'L-CCE2AFA6': 8, 'L-0BEF44E8': 2, 'L-00C91CB5': 64, 'L-622CFD70': 64 };
const BUCKET = 'slipway-e2e-000000000000-us-west-2-data';

const decisions = mkdtempSync(path.join(tmpdir(), 'slipway-decisions-'));
let deployed: Deployed;
beforeAll(async () => {
  const files = {
    'runs/registered.yaml': REGISTERED,
    'runs/src/hello.py': 'print("hello from the deploy")\n',
    'runs/src/compare.py': COMPARE_PY,
  };
  const options = { auth: true, decisionsFile: path.join(decisions, 'decisions') };
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS, options, files);
});
afterAll(async () => {
  await deployed?.end();
  rmSync(decisions, { recursive: true, force: true });
});

const runFile = (name: string) => path.join(ROOT, 'runs', name);

const putObject = (Key: string, Body: string | Uint8Array) =>
  deployed.client(S3Client).send(new PutObjectCommand({ Bucket: BUCKET, Key, Body }));

/** A job that reconcile creates at its next pass. */
function describedJob(TrainingJobName: string): Promise<DescribeTrainingJobResponse> {
  const sagemaker = deployed.client(SageMakerClient);
  const findJob = () => sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })).catch(() => undefined);
  return eventually(findJob, { what: TrainingJobName, timeoutSeconds: 60 });
}

/** What Describe gives back of a request: everything but tags, and with its own fields left out. */
function ofRequest(described: object, request: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(request)
      .filter((key) => key !== 'Tags')
      .map((key) => [key, (described as Record<string, unknown>)[key]]),
  );
}

test('the stack is there and the descriptor names what it made', async () => {
  const describe = new DescribeStacksCommand({ StackName: 'Slipway-e2e-us-west-2' });
  const { Stacks } = await deployed.client(CloudFormationClient).send(describe);
  expect(Stacks?.[0]?.StackStatus).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
  const get = new GetParameterCommand({ Name: '/slipway/environments/e2e/default' });
  const { Parameter } = await deployed.client(SSMClient).send(get);
  const descriptor = Parameter?.Value ?? '';
  expect(JSON.parse(descriptor)).toMatchObject({
    name: 'e2e',
    team: 'default',
    region: 'us-west-2',
    dataBucket: BUCKET,
  });
  writeFileSync(path.join(deployed.folder, 'descriptor.json'), descriptor);
});

test('a deploy submits the run that asks for it, once for each content of its file and code', async () => {
  const runs = async () => {
    const { runs } = JSON.parse(await deployed.slipway('list', '--json')) as {
      runs: { runId: string; name: string }[];
    };
    return runs.filter(({ name }) => name === 'registered').map(({ runId }) => runId);
  };
  const ends = async (runId: string) =>
    expect(JSON.parse(await deployed.slipway('status', runId, '--wait', '--json'))).toMatchObject({
      state: 'completed',
    });
  const [first = ''] = await runs();
  await ends(first);
  expect(await deployed.slipway('logs', first)).toContain('hello from the deploy');

  writeFileSync(path.join(deployed.folder, 'runs/src/hello.py'), 'print("hello again")\n');
  await deployed.deployAgain();
  const both = await runs();
  expect(both).toHaveLength(2);
  const second = both.find((id) => id !== first) ?? '';
  await ends(second);
  expect(await deployed.slipway('logs', second)).toContain('hello again');
});

test('code that lies in S3 runs as it was at the launch, and is not started when it has changed since', async () => {
  const put = async (text: string) => {
    writeFileSync(path.join(deployed.folder, 'runs/src/in_s3.py'), text);
    const archive = path.join(deployed.folder, 'code.tar.gz');
    execFileSync('tar', ['-czf', archive, '-C', path.join(deployed.folder, 'runs/src'), 'in_s3.py']);
    const Body = readFileSync(archive);
    await putObject('code/a.tar.gz', Body);
    return sha256(Body);
  };
  const file = path.join(deployed.folder, 'runs/in-s3.yaml');
  const source = `source: s3://${BUCKET}/code/a.tar.gz, entryPoint: in_s3.py`;
  const text = REGISTERED.replace('name: registered', 'name: in-s3').replace(/source: .*hello.py/, source);
  writeFileSync(file, text);
  const digest = await put('print("as it was")\n');
  await deployed.slipway('launch', file, '--yes', '--wait', '--run-id', 'in-s3');
  expect(await deployed.slipway('logs', 'in-s3')).toContain('as it was');

  await put('print("somebody changed it")\n');
  writeFileSync(file, text.replace('in_s3.py', `in_s3.py, sha256: ${digest}`));
  await expect(deployed.slipway('launch', file, '--yes', '--wait', '--run-id', 'changed')).rejects.toThrow();
  const logs = await deployed.slipway('logs', 'changed');
  expect(logs).toContain(`code archive: must have digest ${digest}`);
  expect(logs).not.toContain('somebody changed it');
});

test('a matrix launches one run per value and compares them', async () => {
  const file = path.join(deployed.folder, 'runs/compare.yaml');
  writeFileSync(file, REGISTERED.replace('name: registered', 'name: compare').replace('hello.py', 'compare.py'));
  const matrix = ['--matrix', 'code.arguments.rate=0.5,2', '--yes'];
  const { matrix: group, runs } = JSON.parse(await deployed.slipway('launch', file, ...matrix, '--wait', '--json')) as {
    matrix: string;
    runs: Record<string, unknown>[];
  };
  expect(group).toMatch(/^matrix-\d{12}$/);
  expect(ANSWERS.matrix.parse({ matrix: group, runs })).toEqual({ matrix: group, runs });
  expect(runs).toEqual([
    expect.objectContaining({ label: 'code.arguments.rate=2', state: 'completed', tokensPerSecondPerGpu: 200 }),
    expect.objectContaining({ label: 'code.arguments.rate=0.5', state: 'completed', tokensPerSecondPerGpu: 50 }),
  ]);
  expect(runs.map(({ loss }) => Number(loss).toFixed(4))).toEqual(['0.1667', '0.6667']);
  const [fast = '', slow = ''] = runs.map(({ runId }) => String(runId));
  const answer = async (...args: string[]) => JSON.parse(await deployed.slipway(...args, '--json'));
  const found = ANSWERS.diff.parse(await answer('report', fast, slow, '--diff'));
  expect(found.options).toEqual([{ path: 'code.arguments.rate', values: [2, 0.5] }]);
  expect([found.code.isSame, found.driver.isSame, found.image.isSame]).toEqual([true, true, true]);
  const side = ANSWERS.comparison.parse(await answer('report', fast, slow));
  expect(side.runs.map(({ runId, loss }) => [runId, Number(loss).toFixed(4)])).toEqual([
    [fast, '0.1667'],
    [slow, '0.6667'],
  ]);
  expect(ANSWERS.noted.parse(await answer('status', slow, '--note', 'half of the best rate'))).toMatchObject({
    runId: slow,
  });
  const searched = ANSWERS.runList.parse(await answer('list', '--search', 'BEST RATE', '--tag', `matrix=${group}`));
  expect(searched.runs.map(({ runId, note }) => [runId, note])).toEqual([[slow, 'half of the best rate']]);
});

test('the Python client launches, follows and reports, and says what the command line says', async () => {
  const file = path.join(deployed.folder, 'runs/python.yaml');
  const code = 'source: ./src, entryPoint: compare.py, arguments: { rate: 0.5 }';
  writeFileSync(file, REGISTERED.replace('name: registered', 'name: python').replace(/source: .*hello.py/, code));
  const script = path.join(ROOT, 'test/e2e/python_client.py');
  const {
    code: exit,
    stdout,
    stderr,
  } = await deployed.tryCall(PYTHON, [script, deployed.folder, file], {
    PYTHONPATH: path.join(ROOT, 'clients/python/src'),
    SLIPWAY_ENVIRONMENT: 'e2e/default',
    AWS_DEFAULT_REGION: 'us-west-2',
  });
  expect(exit, stderr).toBe(0);
  const seen = JSON.parse(stdout);
  expect(seen.again).toBe(seen.runId);
  expect(seen.ended.state).toBe('completed');
  // Lines that follow the end of a run move its goodput between the two calls.
  const { goodput: _, ...status } = JSON.parse(await deployed.slipway('status', seen.runId, '--json'));
  expect(seen.status).toMatchObject(status);
  const { issues } = JSON.parse(
    (await deployed.slipwayAs({}, 'validate', file, '--set', 'compute.instanceType=ml.p9.48xlarge', '--json')).stdout,
  );
  const rules = (found: { rule: string }[]) => found.map(({ rule }) => rule).sort();
  expect(rules(seen.issues)).toEqual(rules(issues));
  expect(seen.refused).toContain('compute/instance-type');
  expect(seen.steps).toEqual([2, 1, 2 / 3]);
  expect(seen.timeline).toContain('run-completed');
  expect(seen.runs).toContain(seen.runId);
  expect(seen.notebook).toMatchObject({
    state: 'completed',
    losses: [2, 1, 2 / 3, 0.5, 0.4],
    plan: expect.any(String),
  });
  expect(seen.notebook.html).toContain('<polyline');
  const drawn = drawnByScript(readFileSync(path.join(deployed.folder, 'notebook-report.html'), 'utf8'));
  expect(drawn).toContain('<title>notebook-');
  expect(drawn.match(/<svg/g)?.length).toBeGreaterThan(1);
});

describe('the request that reaches SageMaker is the one that --dry-run prints', () => {
  // What the jobs would do is no part of this: they wait for capacity until they are stopped.
  beforeAll(async () => {
    await adminOf(deployed).fault({ kind: 'pending', jobName: 'e2e-request-*', seconds: null, times: null });
    for (const prefix of ['llama-tokens', 'llama3-tokens', 'tokens']) await putObject(`${prefix}/x`, 'x');
  });

  test.each([
    ['smp-v2', 'sagemaker/llama2-7b-smp-v2.yaml'],
    ['smddp', 'sagemaker/ddp-smddp-allreduce.yaml'],
    ['fsdp', 'builtin/llama3-8b-fsdp.yaml'],
  ])('%s', async (library, file) => {
    const id = `request-${library}`;
    const small = [
      '--set',
      'compute.instanceType=ml.p4d.24xlarge',
      '--set',
      'compute.alternatives=null',
      '--set',
      'distribution.parameters.shard_degree=null',
    ];
    const set = library === 'fsdp' ? [...small, '--set', 'image.kind=dlc', '--set', 'image.version=2.13'] : [];
    const launched = JSON.parse(
      await deployed.slipway('launch', runFile(file), '--yes', '--json', '--run-id', id, ...set),
    ) as { runId: string };
    const descriptor = path.join(deployed.folder, 'descriptor.json');
    const cli = path.join(ROOT, 'dist/cli/slipway.mjs');
    const dryRun = await deployed.call(process.execPath, [
      cli,
      'launch',
      runFile(file),
      '--environment',
      descriptor,
      '--run-id',
      launched.runId,
      '--dry-run',
      ...set,
    ]);
    const request = JSON.parse(dryRun) as Record<string, unknown>;
    const described = await describedJob(`e2e-${id}-a001`);
    const { TrainingJobName: _name, ...expected } = Object.fromEntries(
      Object.entries(request).filter(([key]) => key !== 'Tags'),
    );
    const { TrainingJobName: _described, ...actual } = ofRequest(described, request);
    expect(actual).toEqual(expected);
    await deployed.slipway('stop', id);
  });
});

describe('with IAM enforced', () => callsOfRoles(() => deployed));

describe('against another team', () => attacksOfATeam(() => deployed));

describe('what IAM was asked', () => decisionsOfRoles(() => deployed, path.join(decisions, 'decisions')));

test('nothing is left running after the sandbox has ended', async () => {
  const folder = deployed.folder;
  await deployed.end();
  const left = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && belongsTo(pid, folder));
  expect(left).toEqual([]);
});

/** Whether a process carries the folder in its command line or environment. */
function belongsTo(pid: string, folder: string): boolean {
  try {
    return ['cmdline', 'environ'].some((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(folder));
  } catch {
    return false;
  }
}
