import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { deployFile, endOf } from '../../../../lib/cli/verify/account/deploy/deploy-world';
import { type ProbeResult, runProbe } from '../../../../lib/cli/verify/account/probe';
import { priceOf } from '../../../../lib/cli/verify/account/probes/read-catalog';
import { cidrContains } from '../../../../lib/cli/verify/account/probes/train-container';
import { answeredIn, counts, maskedAccount, mostCost, recordProblems } from '../../../../lib/cli/verify/account/record';
import { jobRequest, MAX_INSTANCE_SECONDS } from '../../../../lib/cli/verify/account/train/train-jobs';
import { loadEnvironment } from '../../../../lib/core/config/load';
import { evidenceSentence } from '../../../../scripts/evidence-sentence';

test.each([
  ['10.64.0.0/19', '10.64.31.255', true],
  ['10.64.0.0/19', '10.64.32.0', false],
  ['0.0.0.0/0', '203.0.113.9', true],
  ['10.64.0.0/19', 'algo-1', false],
  ['', '10.0.0.1', false],
])('%s contains %s: %s', (block, address, expected) => {
  expect(cidrContains(block, address)).toBe(expected);
});

describe('cost', () => {
  test('everything up to train costs less than 3 USD', () => {
    const costs = mostCost(['read', 'deploy', 'train'], 'us-west-2', { cpu: 'ml.m5.large' }, 4.5);
    expect(costs.map(({ level }) => level)).toEqual(['read', 'deploy', 'train']);
    expect(costs[0]?.usd).toBe(0);
    expect(costs.reduce((sum, { usd }) => sum + (usd ?? Number.NaN), 0)).toBeLessThan(3);
  });
  test('a type without a price has no cost', () => {
    expect(mostCost(['efa'], 'us-west-2', { cpu: 'ml.m5.large', efa: 'ml.none.large' }, 0)).toEqual([
      { level: 'efa', usd: undefined },
    ]);
  });
  test('the jobs of level train are bounded by their own time limits', () => {
    expect(MAX_INSTANCE_SECONDS).toBeLessThan(3 * 3600);
  });
});

describe('records', () => {
  const place = { account: '...2333', region: 'us-west-2', environment: 'research' };
  test('an account is masked to its last four digits', () => {
    expect(maskedAccount('111122222333')).toBe('...2333');
  });
  test('fails: a record of another place, or of something else, is refused with what differs', () => {
    expect(recordProblems({ schema: 1, probes: [], ...place, region: 'us-east-1' }, place)).toEqual([
      'must have region us-west-2, got us-east-1',
    ]);
    expect(recordProblems(null, place)).toEqual(['must be a record of slipway verify']);
    expect(recordProblems({ schema: 1, probes: [], ...place }, place)).toEqual([]);
  });
  test('what is known already is not asked again, what is unknown is', () => {
    const result = (id: string, verdict: ProbeResult['verdict']): ProbeResult => ({
      id,
      assumption: id,
      verdict,
      expected: '',
      seen: '',
      seconds: 0,
    });
    const probes = [result('read/a', 'holds'), result('read/b', 'unknown'), result('read/c', 'differs')];
    const record = {
      schema: 1 as const,
      ...place,
      level: 'read' as const,
      embedded: false,
      startedAt: '',
      probes,
      costUsd: 0,
      left: [],
    };
    expect([...answeredIn(record).keys()]).toEqual(['read/a', 'read/c']);
    expect(counts(probes)).toEqual({ holds: 1, differs: 1, unknown: 1 });
  });
});

test('a probe that is denied says that the caller lacks a permission', async () => {
  const probe = {
    assumption: 'clock',
    expected: '',
    run: () => Promise.reject(Object.assign(new Error('no'), { name: 'AccessDeniedException' })),
  };
  const result = await runProbe(
    'read',
    probe,
    () => ({}),
    () => 0,
  );
  expect(result).toMatchObject({
    id: 'read/clock',
    verdict: 'unknown',
    seen: 'the caller lacks a permission: AccessDeniedException: no',
  });
});

test('a row of the price list gives the type and its first price that is not zero', () => {
  const row = {
    product: { attributes: { instanceName: 'ml.m5.large' } },
    terms: {
      OnDemand: {
        a: { priceDimensions: { x: { pricePerUnit: { USD: '0' } }, y: { pricePerUnit: { USD: '0.115' } } } },
      },
    },
  };
  expect(priceOf(row)).toEqual({ type: 'ml.m5.large', usd: 0.115 });
  expect(priceOf({ product: { attributes: {} } })).toBeUndefined();
});

test('the end of a log is its last lines that name an error', () => {
  const output = 'Deploying\n ❌  failed: quotas: must cover 1\nRolling back\ndone\n';
  expect(endOf({ code: 1, output })).toBe('❌  failed: quotas: must cover 1');
});

const place = {
  region: 'us-west-2',
  account: '111122223333',
  partition: 'aws',
  image: '111122223333.dkr.ecr.us-west-2.amazonaws.com/x:1',
};
test.each([{}, { impossibleQuota: true }, { unknownPrincipal: true }, { dayTwo: true }])(
  'the environment file of %j is one that a deploy takes',
  (change) => {
    const loaded = loadEnvironment(deployFile(place, change));
    expect(loaded.issues).toEqual([]);
    expect(loaded.value?.name).toBe('verify');
  },
);

const descriptor = {
  schemaVersion: 1 as const,
  name: 'research',
  team: 'nlp',
  partition: 'aws',
  account: '111122223333',
  region: 'us-west-2',
  executionRoleArn: 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution',
  dataBucket: 'data',
  checkpointBucket: 'checkpoints',
  artifactBucket: 'artifacts',
  subnetIds: ['subnet-0'],
  securityGroupIds: ['sg-0'],
};

test('a job begins with the name of its environment, which is all that the execution role trusts SageMaker with', () => {
  const request = jobRequest('facts', {
    descriptor,
    image: place.image,
    instanceType: 'ml.m5.large',
    id: '20261122-120000',
  });
  expect(request.TrainingJobName).toBe('research-verify-20261122-120000-facts');
  expect(request.AlgorithmSpecification?.ContainerArguments?.every((argument) => argument.length <= 256)).toBe(true);
  expect(request.InputDataConfig?.map(({ ChannelName }) => ChannelName)).toEqual(['script', 'probe']);
});

describe('evidence', () => {
  const record = {
    schema: 1 as const,
    account: '...2333',
    region: 'us-west-2',
    environment: 'research',
    level: 'read' as const,
    embedded: false,
    startedAt: '2026-12-01T10:00:00.000Z',
    probes: [],
    costUsd: 0,
    left: [],
  };
  test('the README says what was run where', () => {
    expect(evidenceSentence([])).toBe('Slipway has not run on a real AWS account yet.');
    expect(evidenceSentence([record])).toBe(
      '`slipway verify` ran on real accounts: 2026-12-01 in us-west-2, level read: 0 hold, 0 differ, 0 unknown.',
    );
  });
  test('fails: a record of an embedded AWS is no evidence', () => {
    expect(() => evidenceSentence([{ ...record, embedded: true }])).toThrow('must contain records of real accounts');
  });
  test.each(['README.md', 'docs/index.md'])('%s has the sentence of what lies in docs/evidence', (page) => {
    const folder = path.join(__dirname, '../../../../docs/evidence');
    const records = readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')));
    expect(readFileSync(path.join(__dirname, '../../../..', page), 'utf8')).toContain(
      `<!-- evidence -->\n${evidenceSentence(records)}\n`,
    );
  });
});
