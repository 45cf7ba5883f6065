// A platform team's last weeks of the first month on the embedded AWS, with the packed package: an audit, the bill, drift, a team that goes, the
// end of the environment, and its return.

import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../../lib/sandbox/testing';
import type { Outcome } from '../../e2e/support/sandbox';
import { AWS, type CompanyAccount, REGION } from '../support/company-account';
import { type AuditedPlaces, forbiddenCalls } from '../support/forbidden-calls';
import { Month, P4D, STACK, TEAMS } from '../support/month';
import { CHROMIUM, problemsOf } from '../support/screenshot';

const MODEL = `name: model
model: { preset: llama3-8b }
training: { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 64, steps: 1000 }
code: { source: builtin }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 2 }
distribution: { library: fsdp, parameters: { shard_degree: 16 } }
data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
`;
let month: Month;
let dev: CompanyAccount;
let bill: Server;

beforeAll(async () => {
  month = await Month.begin('111111111111', 2);
  dev = await month.account('111111111111');
  month.write(dev, 'ml.p4d.24xlarge');
  await month.bootstrap(dev);
  await month.deployed(dev);
  for (const team of TEAMS) await month.completes(dev, team, `first-${team}`);
});
afterAll(() => {
  bill?.close();
  return month?.end();
});

/** Where the run `first-nlp` left what. */
async function places(): Promise<AuditedPlaces> {
  const bucket = (purpose: string) => `slipway-training-${dev.id}-${REGION}-${purpose}`;
  const [object = ''] = await dev.objects('artifacts', 'runs/nlp/first-nlp/');
  return {
    ...{ account: dev.id, stack: STACK, table: 'slipway-training-runs', job: 'training-first-nlp-a001', team: 'nlp' },
    ...{ data: bucket('data'), checkpoints: bucket('checkpoints'), artifacts: bucket('artifacts'), object },
    executionRole: await dev.roleArn('-nlp-execution'),
    controlFunction: 'slipway-training-control',
  };
}

test('the auditor sees runs, jobs, logs, descriptors and limits, and thirty other calls are denied', async () => {
  const [auditor, at] = [await dev.as('-auditor'), await places()];
  const asked = (words: string[]) => month.project.tryCall(auditor, AWS, ...words, '--output', 'json');
  const seen = [
    ['dynamodb', 'scan', '--table-name', at.table],
    ['sagemaker', 'describe-training-job', '--training-job-name', at.job],
    ['sagemaker', 'list-training-jobs'],
    ['logs', 'filter-log-events', '--log-group-name', '/aws/sagemaker/TrainingJobs'],
    ['ssm', 'get-parameter', '--name', '/slipway/environments/training/nlp'],
    ['service-quotas', 'get-service-quota', '--service-code', 'sagemaker', '--quota-code', P4D],
    ['s3api', 'list-objects-v2', '--bucket', at.artifacts],
  ];
  for (const words of seen) expect([words, (await asked(words)).stderr]).toEqual([words, '']);
  const { stdout } = await asked(['dynamodb', 'scan', '--table-name', at.table]);
  for (const team of TEAMS) expect(stdout).toContain(`first-${team}`);

  const forbidden = forbiddenCalls(at);
  expect(new Set(forbidden.map((words) => words.join(' '))).size).toBe(30);
  const got: Record<string, Outcome> = {};
  for (const words of forbidden) got[words.join(' ')] = await asked(words);
  const isDenied = ({ code, stderr }: Outcome) => code !== 0 && /AccessDenied|not authorized/.test(stderr);
  const passed = Object.entries(got).filter(([, outcome]) => !isDenied(outcome));
  expect(passed.map(([words, { stderr }]) => [words, stderr])).toEqual([]);
});

test('the auditor reads every team through the command line, and can stop and note nothing', async () => {
  const auditor = await dev.as('-auditor');
  for (const team of TEAMS) {
    const of = ['--environment', `training/${team}`];
    const { runs } = await month.answer(auditor, 'list', ...of);
    expect(runs).toMatchObject([{ runId: `first-${team}`, state: 'completed' }]);
    expect(await month.answer(auditor, 'status', `first-${team}`, ...of)).toMatchObject({ state: 'completed' });
    const events = await month.slipway(auditor, 'status', `first-${team}`, '--events', ...of);
    expect([events.code, events.stdout]).toEqual([0, expect.stringContaining('run-completed')]);
    const logs = await month.project.tryCall(auditor, month.program('slipway'), 'logs', `first-${team}`, ...of);
    expect([logs.code, logs.stdout]).toEqual([0, expect.stringContaining('short')]);
    for (const words of [['stop'], ['status', '--note', 'mine']]) {
      const [verb = '', ...more] = words;
      const { code, stdout, stderr } = await month.slipway(auditor, verb, `first-${team}`, ...more, ...of);
      expect([verb, code === 0, `${stdout}${stderr}`]).toEqual([
        verb,
        false,
        expect.stringMatching(/denied|not authorized/i),
      ]);
    }
  }
});

test.skipIf(!CHROMIUM)('every page of the month opens without an error, on a screen and on a phone', async () => {
  const page = (name: string) => path.join(month.folder, `${name}.html`);
  const nlp = await dev.as('-nlp-researcher');
  const of = ['--environment', 'training/nlp'];
  await month.answer(nlp, 'report', 'first-nlp', ...of, '--html', page('report'));
  await month.answer(dev.admin, 'team', 'training', '--html', page('team'));
  writeFileSync(path.join(month.project.folder, 'runs/model.yaml'), MODEL);
  await month.answer(nlp, 'plan', 'runs/model.yaml', ...of, '--search', '--html', page('plan'));
  expect(problemsOf(['report', 'team', 'plan'].map(page))).toEqual([]);
});

/** A Cost Explorer that has a dollar of SageMaker for each team: the embedded AWS has none. */
async function costExplorer(): Promise<string> {
  const Groups = TEAMS.map((team) => ({
    Keys: [`slipway:team$${team}`, 'Amazon SageMaker'],
    Metrics: { UnblendedCost: { Amount: '1', Unit: 'USD' } },
  }));
  bill = createServer((_, response) => response.end(JSON.stringify({ ResultsByTime: [{ Groups }] })));
  await new Promise<void>((resolve) => bill.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(bill.address() as AddressInfo).port}`;
}

test('costs shows the ledger of each team beside the bill', async () => {
  const env = { ...dev.admin, AWS_ENDPOINT_URL_COST_EXPLORER: await costExplorer() };
  const { teams } = await month.answer(env, 'team', 'training', '--costs');
  // A run of seconds on the smallest instance is less than a cent in the ledger.
  const row = { ledgerUsd: 0, sageMakerUsd: 1, differenceUsd: -1 };
  expect(teams).toMatchObject(TEAMS.map((team) => ({ team, ...row })));
});

test('drift finds a limit, a bucket and a retention that somebody changed, and nothing before', async () => {
  const drift = async () => {
    const { code, stdout } = await month.slipway(dev.admin, 'drift', 'training');
    const { beyond } = JSON.parse(stdout).stacks[0] as { beyond: { what: string; ok: boolean | null }[] };
    return [code, beyond.filter(({ ok }) => ok === false).map(({ what }) => what)];
  };
  expect(await drift()).toEqual([0, []]);
  await adminOf(month.sandbox).setQuota(REGION, P4D, 1);
  const bucket = `slipway-training-${dev.id}-${REGION}-checkpoints`;
  await dev.aws('s3api', 'delete-public-access-block', '--bucket', bucket);
  const group = ['--log-group-name', `/slipway/${STACK}/deploys`];
  await dev.aws('logs', 'delete-retention-policy', ...group);
  expect(await drift()).toEqual([1, ['quotas of the last deploy', 'buckets and key', 'retention of log groups']]);
  await adminOf(month.sandbox).setQuota(REGION, P4D, 2);
  const closed = 'BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true';
  await dev.aws('s3api', 'put-public-access-block', '--bucket', bucket, '--public-access-block-configuration', closed);
});

test('a team goes: refused under its live run, and then the others are untouched and its runs are still there', async () => {
  const roles = async () => Promise.all(['-nlp-execution', '-vision-execution'].map((words) => dev.roleArn(words)));
  const before = await roles();
  await month.starts(dev, 'speech', 'last');
  month.write(dev, 'ml.p4d.24xlarge', { teams: ['nlp', 'vision'] });
  const { code, said } = await month.deploy(dev);
  expect([code, said]).toEqual([1, expect.stringContaining('removes team speech, must not hit live runs')]);
  await month.stops(dev, 'speech', 'last');
  await month.deployed(dev);
  expect(await roles()).toEqual(before);
  await expect(dev.roleArn('-speech-')).rejects.toThrow();
  expect(await dev.objects('artifacts', 'runs/speech/first-speech/')).not.toEqual([]);
  await month.completes(dev, 'vision', 'without-speech');
});

test('the end is refused while it is protected; then the stack goes and the data stays', async () => {
  const destroy = () => month.cdk(dev, 'destroy', '--all', '--force');
  expect((await destroy()).said).toContain('TerminationProtection');
  month.write(dev, 'ml.p4d.24xlarge', {
    teams: ['nlp', 'vision'],
    sections: 'protection: { terminationProtection: false }\n',
  });
  await month.deployed(dev);
  const { code, said } = await destroy();
  expect([code, code === 0 ? '' : said]).toEqual([0, '']);
  expect((await dev.stacks()).map(({ StackName }) => StackName)).toEqual(['CDKToolkit']);
  expect(await dev.buckets()).toHaveLength(4);
  expect(await dev.objects('artifacts', 'runs/nlp/first-nlp/')).not.toEqual([]);
  const { Vpcs } = await dev.aws<{ Vpcs: { VpcId: string }[] }>('ec2', 'describe-vpcs');
  expect(Vpcs.map(({ VpcId }) => VpcId)).toContain(month.networkOf(dev).vpcId);
});

test('a year later an environment of the name adopts what was left, runs included', async () => {
  month.write(dev, 'ml.p4d.24xlarge', { teams: ['nlp', 'vision'], sections: 'storage: { adopt: true }\n' });
  await month.deployed(dev);
  dev.endSessions();
  expect(await month.stateOf(dev, 'nlp', 'first-nlp')).toBe('completed');
  await month.completes(dev, 'vision', 'returned');
});
