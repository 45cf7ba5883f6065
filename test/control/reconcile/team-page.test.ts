// The page of a team that each tick publishes: what it shows, when it is written, and that nothing else depends on it.
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/reconcile/reconcile';
import { RunStore } from '../../../lib/control/shared/run-store';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { monthOf } from '../../../lib/core/lifecycle/accounting/month-spend';
import { percent, time, UNKNOWN } from '../../../lib/report/page/format';
import { type AnsweredRun, teamRun } from '../../../lib/report/team/team-report';
import { HOSTILE_TEXT, hiddenIn } from '../../support/hostile-text';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

const KEY = 'teams/nlp/page/index.html';
let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
  Object.assign(world.reconcile, { shares: { nlp: 1, speech: 2 } });
});

const pageOf = (team: string) => world.s3.objects.get(`artifact-bucket/teams/${team}/page/index.html`)?.body ?? '';
const puts = (key = KEY) =>
  world.s3.mock
    .commandCalls(PutObjectCommand)
    .map(({ args: [{ input }] }) => input)
    .filter(({ Key }) => Key === key);

/** A run that has failed with this reason of its job. */
async function failedRun(reason: string): Promise<string> {
  const runId = await world.launch(`${RUN_FILE}limits: { maxAttempts: 1 }\n`);
  const job = `research-${runId}-a001`;
  world.train(job);
  await world.tick();
  const failure = { slipway: 1, class: 'user-code', code: 1, host: 'algo-1', reason };
  world.end(job, 'Failed', `AlgorithmError: ${JSON.stringify(failure)}, exit code: 1`);
  await world.tick();
  await world.tick();
  return runId;
}

/** The section of a page with that id. */
const section = (page: string, id: string) =>
  page.split(`<section id="${id}"`)[1]?.split('</section>')[0] ?? 'no such section';

test('shows the runs of the team alone, its queue with reasons, and as of when', async () => {
  world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
  const live = await world.launch();
  world.pass(MINUTE);
  const waiting = await world.launch();
  world.train(`research-${live}-a001`);
  await world.tick();
  await world.tick();
  const page = pageOf('nlp');
  expect(section(page, 'running')).toContain(`<code>${live}</code>`);
  expect(section(page, 'queue')).toContain(`<code>${waiting}</code>`);
  const why = (await world.store.find(waiting))?.reason ?? 'none';
  expect(section(page, 'queue')).toContain(why.replaceAll('"', '&quot;'));
  expect(page).toContain(`As of ${new Date(world.now()).toISOString().slice(0, 19).replace('T', ' ')} UTC`);
  expect(pageOf('speech')).not.toContain(live);
});

test('shows a failed run with its first error, and the spend of the month against the budget', async () => {
  world.describe({ budget: { usdPerMonth: 500 } });
  const runId = await failedRun('ValueError: shapes do not match');
  const failed = section(pageOf('nlp'), 'failed');
  expect(failed).toContain(`<code>${runId}</code>`);
  expect(failed).toContain('First error');
  expect(failed).toContain('ValueError: shapes do not match');
  expect(section(pageOf('nlp'), 'spend')).toContain('$500');
});

test('a page with hostile text has no markup and no hidden character of it', async () => {
  await failedRun(`${HOSTILE_TEXT}<script>alert(1)</script><img src=x onerror=alert(1)>`);
  const page = pageOf('nlp');
  expect(page).toContain('&lt;script&gt;');
  expect(page).not.toMatch(/<script|<img/);
  expect(hiddenIn(page.replaceAll('\n', ''))).toEqual([]);
});

test('the spend of a run with an attempt in another month is that which its status gives for the month', async () => {
  world.pass(Date.UTC(2026, 10, 30, 23) - world.now());
  const runId = await world.launch();
  for (const attempt of [1, 2]) {
    world.train(`research-${runId}-a00${attempt}`);
    await world.tick(30);
    if (attempt === 1) world.end(`research-${runId}-a001`, 'Failed', 'InternalServerError: of the service');
    for (let i = 0; i < 2; i++) await world.tick(10);
  }
  const status = await world.ask({ action: 'status', runId, timeline: false, configuration: false });
  const { spentUsd } = teamRun(status as unknown as AnsweredRun, monthOf(world.now()), world.now());
  expect(spentUsd).toBeGreaterThan(0.1);
  const [, row = ''] = section(pageOf('nlp'), 'running').split(`<code>${runId}</code>`);
  expect(row).toContain(`$${spentUsd.toFixed(4)}`);
});

/** Writes the heartbeat of now: a step a minute since `began`, or no step yet. */
function train(runId: string, began: number, { firstStep = 1, step = 0, attempt = 1 } = {}): void {
  const seconds = world.now() / 1000;
  const times = { firstStep, firstStepAt: began / 1000, step, stepAt: seconds, endedAt: null };
  const body = { at: seconds, attempt, step, phase: 'train', hosts: 2, starts: [{ number: 0, ...times }] };
  world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify(body));
}

/** The texts of the cells of a run, by the head of their columns. */
function cells(page: string, runId: string): Record<string, string> {
  const [, row = ''] = page.split(`<code>${runId}</code>`);
  const found = row.split('</tr>')[0]?.matchAll(/data-head="([^"]*)"><span>(.*?)<\/span><\/td>/gs) ?? [];
  return Object.fromEntries([...found].map(([, head = '', text = '']) => [head, text.replace(/<[^>]*>/g, '')]));
}

async function status(runId: string): Promise<StatusAnswer> {
  const answer = await world.ask({ action: 'status', runId });
  if (!('goodput' in answer)) throw new Error(JSON.stringify(answer));
  return answer;
}

describe('goodput and expected end', () => {
  /** A run of 100 steps that has trained for these minutes, a step in each. */
  async function trained(minutes: number): Promise<{ runId: string; began: number }> {
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    const began = world.now();
    for (let passed = 5; passed <= minutes; passed += 5) {
      world.pass(5 * MINUTE);
      train(runId, began, { step: passed });
      await world.tick(0);
    }
    return { runId, began };
  }

  test('of a live run are those of its status', async () => {
    const { runId } = await trained(10);
    const { goodput, etaAt } = await status(runId);
    expect(goodput).toBeGreaterThan(0.3);
    expect(cells(pageOf('nlp'), runId)).toMatchObject({
      Goodput: percent(goodput),
      'Expected end': time(etaAt),
    });
    expect(section(pageOf('nlp'), 'spend')).toContain(percent(goodput));
  });

  test.each([20, 45, 70, 90])(
    'stay right while the record of a healthy run is not written, after %i minutes',
    async (minutes) => {
      const { runId } = await trained(minutes);
      const { goodput, etaAt } = await status(runId);
      const shown = cells(pageOf('nlp'), runId);
      // As of the newest heartbeat in the table, so that steps and time belong together: at one step a minute both hardly change.
      expect(Math.abs(Number.parseFloat(shown.Goodput ?? '') - 100 * (goodput ?? 0))).toBeLessThan(
        100 * (5 / (minutes + 5)),
      );
      expect(Math.abs(Date.parse(`${shown['Expected end']}Z`) - Date.parse(etaAt ?? ''))).toBeLessThan(6 * MINUTE);
    },
  );

  test('of a run that is over: goodput is that of its status, and no end is expected', async () => {
    const { runId } = await trained(30);
    world.end(`research-${runId}-a001`, 'Completed');
    await world.tick();
    await world.tick();
    const { goodput } = await status(runId);
    expect(goodput).toBeGreaterThan(0.3);
    expect(cells(section(pageOf('nlp'), 'ended'), runId).Goodput).toBe(percent(goodput));
  });

  test('are not known for a run of which no step was seen, beside one of which steps were', async () => {
    const silent = await world.launch();
    world.train(`research-${silent}-a001`);
    world.pass(MINUTE);
    const { runId } = await trained(15);
    expect(cells(pageOf('nlp'), runId).Goodput).toMatch(/%/);
    expect(cells(pageOf('nlp'), silent)).toMatchObject({ Goodput: UNKNOWN, 'Expected end': UNKNOWN });
  });

  test('read the timeline of a healthy or ended run once for each version of its record', async () => {
    const { runId } = await trained(30);
    const asked: string[] = [];
    const { timeline } = world.store;
    world.reconcile.store.timeline = (id) => {
      asked.push(id);
      return timeline.call(world.store, id);
    };
    const before = (await world.store.find(runId))?.version;
    for (let i = 0; i < 4; i++) {
      world.pass(5 * MINUTE);
      train(runId, world.now() - 35 * MINUTE, { step: 35 });
      await onEvent(world.reconcile, { slipway: 'tick' });
      world.messages.splice(0);
    }
    expect((await world.store.find(runId))?.version).toBe(before);
    expect(asked.length).toBeLessThanOrEqual(1);
  });
});

describe('is written', () => {
  test('as HTML that no cache keeps, with the key of the team', async () => {
    const teamKeyArn = 'arn:aws:kms:us-west-2:111122223333:key/11111111-2222-3333-4444-555555555555';
    await world.tick();
    expect(puts()).toHaveLength(1);
    expect(puts()[0]).toMatchObject({ Bucket: 'artifact-bucket', ContentType: 'text/html; charset=utf-8' });
    expect(puts()[0]).toMatchObject({ CacheControl: 'no-cache' });
    expect(puts()[0]).not.toHaveProperty('SSEKMSKeyId');
    world.describe({ teamKeyArn });
    await world.launch();
    await world.tick();
    expect(puts()[1]).toMatchObject({ ServerSideEncryption: 'aws:kms', SSEKMSKeyId: teamKeyArn });
  });

  test('at most once at a tick, and not again while nothing on it changes, also by another process', async () => {
    for (let i = 0; i < 3; i++) await world.tick();
    expect(puts()).toHaveLength(1);
    Object.assign(world.reconcile, { store: new RunStore(world.table.client, 'runs') });
    await world.tick();
    expect(puts()).toHaveLength(1);
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    for (let i = 0; i < 4; i++) await world.tick();
    expect(puts()).toHaveLength(5);
    expect(puts('teams/speech/page/index.html')).toHaveLength(1);
  });

  test('not again while a run waits for the same reason', async () => {
    world.reconcile.limits = { read: async (needs) => new Map(needs.map(({ name }) => [name, { value: 0 }])) };
    const runId = await world.launch();
    await world.tick();
    await world.tick();
    const before = puts().length;
    expect(section(pageOf('nlp'), 'queue')).toContain(runId);
    for (let i = 0; i < 3; i++) await world.tick();
    expect(puts()).toHaveLength(before);
  });

  test('again when the last one was replaced by another process in between', async () => {
    const other = { ...world.reconcile, store: new RunStore(world.table.client, 'runs') };
    await world.tick();
    const runId = await world.launch();
    await onEvent(other, { slipway: 'tick' });
    world.messages.splice(0);
    expect(pageOf('nlp')).toContain(runId);
    for (const [id] of world.table.items) if (id.startsWith(runId)) world.table.items.delete(id);
    await world.tick();
    expect(pageOf('nlp')).not.toContain(runId);
  });

  test('at the first tick of an hour for a team without active runs, of which no other tick reads anything', async () => {
    await failedRun('first');
    const asked: string[] = [];
    const { ofTeam } = world.store;
    world.reconcile.store.ofTeam = (team, limit) => {
      asked.push(team);
      return ofTeam.call(world.store, team, limit);
    };
    for (let i = 0; i < 12; i++) await world.tick();
    expect(asked.sort()).toEqual(['nlp', 'speech']);
    const before = puts().length;
    world.describe({ budget: { usdPerMonth: 700 } });
    for (let i = 0; i < 12; i++) await world.tick();
    expect(puts()).toHaveLength(before + 1);
    expect(pageOf('nlp')).toContain('$700');
  });

  test('with a run that only one of the indexes shows as over, in its later version', async () => {
    const runId = await failedRun('first');
    const [over] = await world.store.ofTeam('nlp', 1);
    const before = { ...over, state: 'running', version: (over?.version ?? 0) - 1 } as NonNullable<typeof over>;
    world.reconcile.store.active = async () => [before];
    await world.tick();
    expect(section(pageOf('nlp'), 'running')).not.toContain(runId);
    expect(section(pageOf('nlp'), 'failed')).toContain(runId);
  });

  test('with the newest runs alone when there are many, and says so', async () => {
    await failedRun('first');
    const [run] = await world.store.ofTeam('nlp', 1);
    world.reconcile.store.ofTeam = async (_team, limit) =>
      Array.from({ length: limit }, (_, i) => ({ ...run, runId: `failed-${i}` }) as NonNullable<typeof run>);
    await world.launch();
    await world.tick();
    expect(pageOf('nlp')).toContain('50 of 199');
    expect(pageOf('nlp')).toContain('the newest 200 runs');
  });
});

describe('fails', () => {
  const said: unknown[] = [];
  beforeEach(() => {
    said.length = 0;
    world.reconcile.log = (level, message, details) => said.push([level, message, details]);
  });

  test('a page that is not written is logged; other teams have theirs, and the tick goes on', async () => {
    const { putObject } = { putObject: world.s3.put };
    world.s3.mock.on(PutObjectCommand).callsFake(({ Bucket, Key, Body }) => {
      if (Key === KEY) throw new Error('SlowDown');
      putObject(`${Bucket}/${Key}`, String(Body));
      return {};
    });
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    await world.tick();
    await world.tick();
    expect(said).toContainEqual([
      'warn',
      'the page of a team was not written',
      { team: 'nlp', error: 'Error: SlowDown' },
    ]);
    expect(pageOf('speech')).toContain('None');
    expect((await world.store.find(runId))?.attempt?.secondaryStatus).toBe('Training');
    // Whatever was not written is tried again.
    expect(puts()).toHaveLength(2);
  });

  test('a table that cannot say what was written last keeps no tick from its work', async () => {
    world.reconcile.store.findPages = () => Promise.reject(new Error('throttled'));
    const runId = await world.launch();
    await world.tick();
    expect((await world.store.find(runId))?.attempt).toBeDefined();
    expect(said).toContainEqual(['warn', 'the pages of the teams were not written', { error: 'Error: throttled' }]);
    expect(puts()).toEqual([]);
  });

  test('a tick without time left writes no page, and says so', async () => {
    Object.assign(world.reconcile, { remainingMs: () => 4000 });
    await world.tick();
    expect(puts()).toEqual([]);
    expect(said).toContainEqual(['warn', 'a tick had no time to write the page of every team', expect.anything()]);
  });
});
