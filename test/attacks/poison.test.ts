// Items of the run table that cannot be read: a restore, a hand edit, another version, or a defect of ours left them.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RunStore } from '../../lib/control/shared/run-store';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../control/support/fake-world';
import { draws } from '../support/draws';

type Document = Record<string, unknown>;

async function twoRuns() {
  const world = fakeWorld();
  const bad = await world.launch(RUN_FILE.replace('pretrain', 'bad'));
  world.pass(2000);
  const good = await world.launch(RUN_FILE.replace('pretrain', 'good'));
  for (const runId of [bad, good]) world.train(`research-${runId}-a001`);
  await world.tick(5);
  return { world, bad, good };
}

/** Changes the document of an item, which the functions then read again. */
function spoil(world: FakeWorld, key: string, change: (document: Document) => unknown): void {
  const item = world.table.items.get(key);
  const document = change(JSON.parse(item?.document?.S ?? 'null') as Document);
  world.table.items.set(key, { ...item, ...(typeof document === 'string' && { document: { S: document } }) });
  if (document === undefined) {
    const { document: _, ...rest } = item ?? {};
    world.table.items.set(key, rest);
  }
  const store = new RunStore(world.table.client, 'runs');
  Object.assign(world.reconcile, { store });
  Object.assign(world.control, { store });
}

const without =
  (...path: string[]) =>
  (document: Document) => {
    const last = path.pop() as string;
    let at: Document = document;
    for (const key of path) at = at[key] as Document;
    delete at[last];
    return JSON.stringify(document);
  };
const changed = (change: (document: Document) => void) => (document: Document) => {
  change(document);
  return JSON.stringify(document);
};

/** The other run ends, a new one starts, and a person can read both. */
async function othersGoOn(world: FakeWorld, good: string): Promise<void> {
  world.end(`research-${good}-a001`, 'Completed');
  await world.tick(5);
  expect(await world.ask({ action: 'status', runId: good })).toMatchObject({ state: 'completed' });
  expect(await world.ask({ action: 'list' })).toMatchObject({ ok: true });
  expect(await world.ask({ action: 'events' })).toMatchObject({ ok: true });
  world.pass(2000);
  const next = await world.launch(RUN_FILE.replace('pretrain', 'next'));
  await world.tick(5);
  expect(world.sagemaker.jobs.has(`research-${next}-a001`)).toBe(true);
}

const RUN_ITEMS: Record<string, (document: Document) => unknown> = {
  'a document that is not JSON': () => '{',
  'no document': () => undefined,
  'a document that is null': () => 'null',
  'budgets that are text': changed((d) => Object.assign(d, { budgets: 'x' })),
  'no policy': without('policy'),
  'no capacity options': changed((d) => Object.assign(d.policy as object, { ladder: [] })),
  'an unknown state': changed((d) => Object.assign(d, { state: 'draining' })),
  'an unknown failure class': changed((d) => Object.assign(d.attempt as object, { failureClass: 'network' })),
  'a time far outside any calendar': changed((d) => Object.assign(d, { createdAt: 1e18 })),
  'a start with a time far outside any calendar': changed((d) =>
    Object.assign(d.attempt as object, {
      progress: {
        step: 1,
        phase: '',
        beatAt: 1,
        movedAt: 1,
        starts: [{ number: 0, firstStep: 1, firstStepAt: 1e18, step: 1, stepAt: 1e18, endedAt: null }],
      },
    }),
  ),
};

describe('a RUN item', () => {
  test.each(Object.entries(RUN_ITEMS))('with %s stops no other run, and a person is told once', async (_, change) => {
    const { world, bad, good } = await twoRuns();
    spoil(world, `${bad}|RUN`, change);
    await othersGoOn(world, good);
    await world.tick(5);
    expect(world.published.filter((text) => text.includes(bad) && text.includes('cannot be read'))).toHaveLength(1);
    const answer = await world.ask({ action: 'status', runId: bad });
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unreadable' }] });
  });

  test('is readable again after it was repaired', async () => {
    const { world, bad } = await twoRuns();
    const item = world.table.items.get(`${bad}|RUN`);
    spoil(world, `${bad}|RUN`, () => '{');
    await world.tick(5);
    world.table.items.set(`${bad}|RUN`, item as never);
    world.end(`research-${bad}-a001`, 'Completed');
    await world.tick(5);
    expect(await world.ask({ action: 'status', runId: bad })).toMatchObject({ state: 'completed' });
  });

  test('with any part of it taken away or replaced stops no other run', { timeout: 600_000 }, async () => {
    const replacement = fc.constantFrom<unknown>(undefined, null, '', 'x', -1, 1e300, [], {}, [null], { a: 1 }, true);
    await fc.assert(
      fc.asyncProperty(fc.nat(), replacement, async (at, value) => {
        const { world, bad, good } = await twoRuns();
        spoil(
          world,
          `${bad}|RUN`,
          changed((d) => {
            const paths = pathsOf(d);
            const path = [...(paths[at % paths.length] as string[])];
            const last = path.pop() as string;
            const parent = path.reduce<Document>((node, key) => node[key] as Document, d);
            if (value === undefined) delete parent[last];
            else parent[last] = value;
          }),
        );
        await othersGoOn(world, good);
      }),
      { numRuns: draws(40) },
    );
  });
});

/** Paths of all fields of a document, at any depth. */
function pathsOf(node: Document, base: string[] = []): string[][] {
  return Object.entries(node).flatMap(([key, value]) => [
    [...base, key],
    ...(typeof value === 'object' && value !== null ? pathsOf(value as Document, [...base, key]) : []),
  ]);
}

describe('an INTENT item of a run that waits', () => {
  const INTENTS: Record<string, (document: Document) => unknown> = {
    'without compute': changed((d) => {
      for (const spec of [d.spec, (d.spec as Document).written]) delete (spec as Document).compute;
      delete (d.spec as Document).written;
    }),
    'without a spec': without('spec'),
    'that is not JSON': () => '{',
  };
  test.each(Object.entries(INTENTS))('%s stops no other team', async (_, change) => {
    const world = fakeWorld();
    world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
    await world.launch(RUN_FILE.replace('pretrain', 'first'));
    world.pass(2000);
    const bad = await world.launch(RUN_FILE.replace('pretrain', 'bad'));
    spoil(world, `${bad}|INTENT`, change);
    world.limits.set('ml.m5.xlarge for training job usage', { value: 20 });
    const speech = ALIAS.replace('team-nlp', 'team-speech');
    const intent = await world.ask(
      { action: 'start', runFile: RUN_FILE.replace('pretrain', 'other'), clientRequestId: 'o' },
      speech,
    );
    const { runId } = intent as { runId: string };
    await world.ask({ action: 'start', runId, confirm: true }, speech);
    await world.settle();
    await world.tick(5);
    expect(world.sagemaker.jobs.has(`research-${runId}-a001`)).toBe(true);
    expect(world.sagemaker.jobs.has(`research-${bad}-a001`)).toBe(false);
    await world.tick(5);
    expect(world.published.filter((text) => text.includes(bad) && text.includes('cannot be read'))).toHaveLength(1);
  });

  test('that cannot be read again after it was repaired is reported again', async () => {
    const world = fakeWorld();
    world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
    await world.launch(RUN_FILE.replace('pretrain', 'first'));
    world.pass(2000);
    const bad = await world.launch(RUN_FILE.replace('pretrain', 'bad'));
    const item = world.table.items.get(`${bad}|INTENT`);
    for (const reports of [1, 2]) {
      spoil(world, `${bad}|INTENT`, () => '{');
      for (let i = 0; i < 2; i++) await world.tick(5);
      expect(world.published.filter((text) => text.includes('cannot be read'))).toHaveLength(reports);
      world.table.items.set(`${bad}|INTENT`, item as never);
      await world.tick(5);
    }
  });
});
