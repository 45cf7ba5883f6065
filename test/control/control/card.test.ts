import { beforeEach, describe, expect, test } from 'vitest';
import type { ControlPayload } from '../../../lib/core/contracts/control';
import { ALIAS, type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
let runId: string;
beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
});
const card = (more: object = {}) =>
  ({
    action: 'card',
    runId,
    weights: { uri: 's3://registry/pretrain/', files: [{ name: 'model.safetensors', bytes: 2_000_000 }] },
    lines: null,
    jobs: null,
    lineage: { of: runId, checkpoint: null, runs: [], notes: [] },
    ...more,
  }) as ControlPayload;
const cardOf = async (more: object = {}): Promise<string> => {
  const answer = await world.ask(card(more));
  if (!answer.ok || !('card' in answer)) throw new Error(JSON.stringify(answer));
  return answer.card;
};

describe('a card', () => {
  test('is that of the run: its name, and the options of its file', async () => {
    const answer = await world.ask(card());
    expect(answer).toMatchObject({
      ok: true,
      file: 'README.md',
      registryCard: expect.stringContaining(`"run":"${runId}"`),
    });
    const text = await cardOf();
    expect(text).toContain('pretrain');
    expect(text).toContain('128');
  });

  test('has the lines and the jobs that the caller has read, where it could read them', async () => {
    const message = JSON.stringify({ slipway: { event: 'evaluation', step: 40, loss: 3.25 } });
    const lines = [{ at: '2026-11-21T12:10:00.000Z', attempt: 1, message }];
    const jobs = [
      {
        trainingJobName: `research-${runId}-a001`,
        instances: [{ instanceType: 'ml.m5.xlarge', count: 2 }],
        isSpot: false,
        billableSeconds: 7200,
      },
    ];
    expect(await cardOf({ lines, jobs })).not.toBe(await cardOf());
    expect(await cardOf({ lines: [], jobs: [] })).not.toBe(await cardOf({ jobs }));
  });

  test("fails: another team's run does not exist for this one", async () => {
    const answer = await world.ask(card(), ALIAS.replace(/team-.*/, 'team-speech'));
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
  });
});

test('the losses of a card are those of the lines; without them they are dashes, and nothing is written', async () => {
  const before = JSON.stringify([...world.table.items]);
  const step = { event: 'step', step: 40, loss: 2.25, tokens: 4000 };
  const lines = [{ at: '2026-11-21T12:05:00.000Z', attempt: 1, message: `slipway ${JSON.stringify(step)}` }];
  expect(await cardOf({ lines })).toContain('| training loss | 2.25 at the beginning, 2.25 at the end |');
  expect(await cardOf()).toContain('| training loss | – |');
  expect(JSON.stringify([...world.table.items])).toBe(before);
});
