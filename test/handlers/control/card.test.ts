import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
let runId: string;
beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
});

const ask = (more: object = {}) =>
  world.ask({
    ...{ action: 'card' as const, runId, lines: null, jobs: null },
    weights: { uri: 's3://data-bucket/teams/nlp/models/a/', files: [{ name: 'config.json', bytes: 300 }] },
    lineage: { of: runId, checkpoint: null, runs: [], notes: ['no checkpoint'] },
    ...more,
  });

test('the card has what the run table knows, and what the caller has read', async () => {
  const step = { event: 'step', step: 40, loss: 2.25, tokens: 4000 };
  const lines = [{ at: '2026-11-21T12:05:00.000Z', attempt: 1, message: `slipway ${JSON.stringify(step)}` }];
  const answer = (await ask({ lines })) as { file: string; card: string; registryCard: string };
  expect(answer).toMatchObject({ ok: true, file: 'README.md' });
  expect(answer.card).toContain(`Weights of the run \`${runId}\` (environment research, team nlp, us-west-2)`);
  expect(answer.card).toContain('| training loss | 2.25 at the beginning, 2.25 at the end |');
  expect(answer.card).toContain('| steps | 40 |');
  expect(answer.card).toContain('| not known | no checkpoint |');
  expect(JSON.parse(answer.registryCard).model_overview.model_artifact).toEqual([
    's3://data-bucket/teams/nlp/models/a/',
  ]);
});

test('nothing is written, and what nobody has read is a dash', async () => {
  const before = JSON.stringify([...world.table.items]);
  const answer = (await ask()) as { card: string };
  expect(answer.card).toContain('| training loss | – |');
  expect(JSON.stringify([...world.table.items])).toBe(before);
});

test('fails: no such run, and a request that is none', async () => {
  expect(await ask({ runId: 'nobody' })).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
  expect(await ask({ weights: { uri: 's3://b/' } })).toMatchObject({
    ok: false,
    issues: [{ rule: 'control/payload' }],
  });
});
