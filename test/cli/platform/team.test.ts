import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-team-'));
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

const parameters = mockClient(SSMClient);
const functions = mockClient(LambdaClient);
const objects = mockClient(S3Client);

const attempt = (startedAt: string, endedAt: string | null, more: object = {}) => ({
  startedAt,
  endedAt,
  instanceCount: 2,
  ...more,
});
const run = (runId: string, more: object) => ({
  runId,
  name: runId,
  team: 'nlp',
  state: 'completed',
  reason: '',
  attempt: 1,
  attempts: [],
  step: 10,
  goodput: null,
  spendUsd: null,
  queuePosition: null,
  ...more,
});
const RUNS = [
  run('waits', { state: 'queued', reason: 'quota: 2 of 4 free', queuePosition: 2 }),
  run('first', { state: 'queued', queuePosition: 1 }),
  run('october', { attempts: [attempt('2026-10-01T00:00:00Z', '2026-10-02T00:00:00Z')], spendUsd: 70 }),
  // Half of its time lies in November.
  run('over-two', {
    state: 'failed',
    reason: '<script>alert(1)</script>',
    goodput: 0.5,
    attempts: [attempt('2026-10-31T12:00:00Z', '2026-11-01T12:00:00Z', { gpuHours: 384, gpuUtilizationPercent: 40 })],
    spendUsd: 100,
  }),
  run('november', {
    goodput: 0.9,
    attempts: [attempt('2026-11-02T00:00:00Z', '2026-11-03T00:00:00Z', { gpuHours: 64, gpuUtilizationPercent: 80 })],
    spendUsd: 150,
  }),
];

beforeEach(() => {
  for (const mock of [parameters, functions]) mock.reset();
  parameters.on(GetParameterCommand, { Name: '/slipway/environments/lab' }).resolves({ Parameter: { Value: 'nlp' } });
  const descriptor = {
    ...DESCRIPTOR,
    name: 'lab',
    budget: { usdPerMonth: 220 },
    controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:slipway-lab-control:nlp',
  };
  parameters
    .on(GetParameterCommand, { Name: '/slipway/environments/lab/nlp' })
    .resolves({ Parameter: { Value: JSON.stringify(descriptor) } });
  functions.on(InvokeCommand).callsFake(({ Payload }) => {
    const request = JSON.parse(new TextDecoder().decode(Payload));
    const answer =
      request.action === 'list'
        ? { ok: true, runs: RUNS }
        : { ok: true, ...RUNS.find((r) => r.runId === request.runId) };
    return { Payload: new TextEncoder().encode(JSON.stringify(answer)) };
  });
});

const team = (...args: string[]) => runCli('team', 'lab', '--region', 'us-west-2', '--month', '2026-11', ...args);

test('the runs of the month with their part of its spend, and goodput weighed by it', async () => {
  const { code, stdout } = await team('--json');
  expect(code).toBe(0);
  const { teams, month } = JSON.parse(stdout);
  // Nothing that the published schema does not name, nor less.
  expect(ANSWERS.teamReport.parse(JSON.parse(stdout))).toEqual(JSON.parse(stdout));
  expect(month).toBe('2026-11');
  expect(teams).toMatchObject([{ team: 'nlp', spentUsd: 200, budgetUsd: 220 }]);
  expect(teams[0]).toMatchObject({ gpuHours: 192 + 64, gpuUtilizationPercent: 50 });
  expect(teams[0].goodput).toBeCloseTo((0.5 * 50 + 0.9 * 150) / 200);
  expect(teams[0].runs.map((r: { runId: string; spentUsd: number }) => [r.runId, r.spentUsd])).toEqual([
    ['waits', 0],
    ['first', 0],
    ['over-two', 50],
    ['november', 150],
  ]);
});

test('the page names every run once, the queue in its order, and no markup of a reason', async () => {
  const file = path.join(FOLDER, 'teams.html');
  const { code, stdout } = await team('--html', file);
  expect(code).toBe(0);
  expect(stdout).toMatch(/nlp +0 +2 +2 +200\.00 +220 +80\.0 % +256\.0 +50 %/);
  const page = readFileSync(file, 'utf8');
  expect(page.indexOf('<code>first</code>')).toBeLessThan(page.indexOf('<code>waits</code>'));
  expect(page).toContain('Failed in 2026-11');
  expect(page).toContain('Completed or stopped in 2026-11');
  expect(page).toContain('50 % busy');
  expect(page).not.toContain('<script>');
  expect(page).toContain('&lt;script&gt;');
  expect(page.match(/<code>november<\/code>/g)).toHaveLength(1);
});

describe('a link to the published page', () => {
  const PLACE = { Bucket: DESCRIPTOR.artifactBucket, Key: 'teams/nlp/page/index.html' };
  const link = (...args: string[]) => runCli('team', 'lab', '--region', 'us-west-2', '--link', ...args);
  beforeEach(() => {
    objects.reset();
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'example');
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('is signed for this object and one hour with the credentials of the caller, and the time of the page is told', async () => {
    objects.on(HeadObjectCommand, PLACE).resolves({ LastModified: new Date('2026-11-21T12:05:00Z') });
    const { code, stdout, stderr } = await link();
    expect(code).toBe(0);
    const url = new URL(stdout.trim());
    expect(decodeURIComponent(url.href)).toContain(`${PLACE.Bucket}`);
    expect(url.pathname).toMatch(/teams\/nlp\/page\/index\.html$/);
    expect(url.searchParams.get('X-Amz-Expires')).toBe('3600');
    expect(url.searchParams.get('X-Amz-Credential')).toMatch(/^AKIDEXAMPLE\//);
    expect(stderr).toContain('nlp: as of 2026-11-21T12:05:00.000Z');
    const { links } = JSON.parse((await link('--json')).stdout);
    expect(links).toEqual([
      { team: 'nlp', url: expect.stringContaining(PLACE.Key), writtenAt: '2026-11-21T12:05:00.000Z' },
    ]);
  });

  test.each([
    ['NotFound', 404],
    ['403', 403],
  ])('fails: %s is no page that the caller may read', async (name, httpStatusCode) => {
    objects.on(HeadObjectCommand).rejects(Object.assign(new Error(name), { name, $metadata: { httpStatusCode } }));
    expect(await link()).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('--link: must have a page that you may read, got none of team nlp'),
    });
  });

  test('fails: with a month, for which there is no page, and when S3 does not answer', async () => {
    expect(await link('--month', '2026-10')).toMatchObject({ code: 2, stderr: expect.stringContaining('--month') });
    objects.on(HeadObjectCommand).rejects(Object.assign(new Error('slow'), { name: 'TimeoutError' }));
    expect(await link()).toMatchObject({ code: 3, stdout: '' });
  });
});

test('fails: a month to come, a team that is none, and a file that cannot be written', async () => {
  expect(await runCli('team', 'lab', '--region', 'us-west-2', '--month', '2999-01')).toMatchObject({ code: 2 });
  expect(await team('--team', 'vision')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('must be an environment of us-west-2 with team vision that you may read'),
  });
  expect(await team('--html', path.join(FOLDER, 'no/such/folder.html'))).toMatchObject({ code: 2 });
});
