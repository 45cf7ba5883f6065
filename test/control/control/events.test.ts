import { beforeEach, describe, expect, test } from 'vitest';
import type { EventAnswer, EventsAnswer } from '../../../lib/core/contracts/control';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

async function page(request: {
  runId?: string;
  since?: string;
  after?: string;
  limit?: number;
}): Promise<EventsAnswer> {
  const answer = await world.ask({ action: 'events', ...request });
  if (!('next' in answer)) throw new Error(JSON.stringify(answer));
  return answer;
}

async function all(request: { runId?: string; since?: string; limit: number }): Promise<EventAnswer[]> {
  const found: EventAnswer[] = [];
  let after: string | undefined;
  do {
    const { events, next } = await page({ ...request, ...(after !== undefined && { after, since: undefined }) });
    found.push(...events);
    after = next ?? undefined;
  } while (after !== undefined);
  return found;
}

const other = RUN_FILE.replace('name: pretrain', 'name: other');
const told = (events: readonly EventAnswer[]) => events.map((e) => `${e.runId} ${e.cursor}`);

async function twoRuns(): Promise<[string, string]> {
  const first = await world.launch();
  world.pass(1000);
  const second = await world.launch(other);
  for (let i = 0; i < 3; i++) await world.tick();
  world.end(`research-${first}-a001`, 'Failed', 'ClientError: bad request');
  await world.tick();
  return [first, second];
}

describe('events', () => {
  test('of a run are its timeline, notices among them, first to last', async () => {
    const [first] = await twoRuns();
    const { events, next } = await page({ runId: first });
    expect(next).toBeNull();
    expect(events.map((e) => e.what)).toEqual(
      expect.arrayContaining([
        'run-confirmed',
        'run-admitted',
        'attempt-intended',
        'job-created',
        'run-failed',
        'notice',
      ]),
    );
    expect(events.find((e) => e.what === 'notice')?.evidence).toEqual({
      notice: expect.stringMatching(/^run-failed\//),
      runbook: 'config',
    });
    expect(events.map((e) => e.at)).toEqual(events.map((e) => e.at).sort());
  });

  test.each([1, 2, 3, 7])(
    'come in pages of %i without a gap and without one twice, also of several runs',
    async (limit) => {
      const [first, second] = await twoRuns();
      const whole = await page({ limit: 500 });
      expect(new Set(whole.events.map((e) => e.runId))).toEqual(new Set([first, second]));
      expect(told(await all({ limit }))).toEqual(told(whole.events));
      expect(told(await all({ runId: second, limit }))).toEqual(told(whole.events.filter((e) => e.runId === second)));
    },
  );

  test.each([1, 2, 3, 7])('in pages of %i include what happened to a run after its end', async (limit) => {
    const [first, second] = await twoRuns();
    for (const runId of [second, first, second]) {
      world.pass(60_000);
      await world.ask({ action: 'note', runId, text: `after ${world.now()}` });
    }
    const whole = await page({ limit: 500 });
    expect(whole.events.filter(({ what }) => what === 'note-written')).toHaveLength(3);
    expect(told(await all({ limit }))).toEqual(told(whole.events));
    const since = new Date(world.now() - 3_600_000).toISOString();
    const next = whole.events.find(({ what }) => what === 'run-failed')?.cursor;
    const rest = whole.events.filter(({ cursor }) => cursor > (next ?? ''));
    expect(told((await page({ since, after: next, limit: 500 })).events)).toEqual(told(rest));
  });

  test('include those of a run that has just ended, also where a hundred runs are newer', async () => {
    const [first, second] = await twoRuns();
    world.copyRun(first, 105);
    world.pass(3_600_000);
    const since = new Date(world.now()).toISOString();
    world.end(`research-${second}-a001`, 'Failed', 'ClientError: bad request');
    await world.tick();
    const alone = await page({ runId: second, since });
    expect(told(alone.events)).not.toEqual([]);
    expect(told((await page({ since, limit: 500 })).events)).toEqual(told(alone.events));
    // Without a time, the pages of all runs begin with the oldest ones and lose none.
    const whole = await all({ limit: 100 });
    expect(new Set(whole.map(({ runId }) => runId)).size).toBe(107);
    expect(whole).toHaveLength(new Set(told(whole)).size);
  });

  test('begin at a time, and leave out runs that were over before it', async () => {
    const [first, second] = await twoRuns();
    world.pass(3_600_000);
    await world.tick();
    const since = new Date(world.now() - 60_000).toISOString();
    world.end(`research-${second}-a001`, 'Completed');
    await world.tick();
    const { events } = await page({ since });
    expect(new Set(events.map((e) => e.runId))).toEqual(new Set([second]));
    expect(events.every((e) => e.at >= since)).toBe(true);
    expect((await page({ runId: first, since })).events).toEqual([]);
  });

  test("of another team are nobody else's business", async () => {
    const [first] = await twoRuns();
    const alias = 'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-speech';
    expect(await world.ask({ action: 'events', runId: first }, alias)).toMatchObject({
      ok: false,
      issues: [{ rule: 'run/unknown' }],
    });
    expect(await world.ask({ action: 'events' }, alias)).toEqual({ ok: true, events: [], next: null });
  });

  test('are of the own team alone, also where runs of another one are active', async () => {
    const alias = 'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-speech';
    const asked = { action: 'start' as const, runFile: other, clientRequestId: 'of-speech' };
    const answer = await world.ask(asked, alias);
    if (!answer.ok || !('uploads' in answer)) throw new Error(JSON.stringify(answer));
    await world.ask({ action: 'start', runId: answer.runId, confirm: true }, alias);
    const [first, second] = await twoRuns();
    expect(new Set((await page({})).events.map((e) => e.runId))).toEqual(new Set([first, second]));
  });

  test('are those of every run that is not over, also one that is not among the newest', async () => {
    const [, second] = await twoRuns();
    world.store.ofTeam = async () => [];
    expect(new Set((await page({})).events.map((e) => e.runId))).toContain(second);
  });

  test.each([
    ['a place that no page gave', { after: "x'" }, "x'"],
    ['a time that is none', { since: 'yesterday' }, 'yesterday'],
    ['more than an answer holds', { limit: 501 }, '501'],
  ])('fails: %s', async (_, request, got) => {
    expect(await world.ask({ action: 'events', ...request })).toMatchObject({
      ok: false,
      issues: [
        {
          rule: 'control/payload',
          message: expect.stringContaining(`, got ${got}; correct it, or use a command line`),
        },
      ],
    });
  });
});
