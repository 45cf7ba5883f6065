import { DeleteObjectsCommand } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import type { DeleteAnswer } from '../../../lib/core/contracts/control';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
let runId: string;
const OTHER_TEAM = ALIAS.replace('team-nlp', 'team-speech');

const remove = (confirm?: boolean, alias?: string) => world.ask({ action: 'delete', runId, confirm }, alias);
const issues = async (answer: ReturnType<typeof remove>) => {
  const refused = await answer;
  return 'issues' in refused ? refused.issues.map(({ rule }) => rule) : expect.fail(JSON.stringify(refused));
};
const names = () => [...world.s3.objects.keys()];
const ownNames = () => names().filter((name) => name.includes(`/runs/nlp/${runId}/`));

/** A run of team nlp that was stopped after it had committed a checkpoint. */
beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
  world.train(`research-${runId}-a001`);
  world.commit(runId, 10);
  await world.tick();
});
async function end(): Promise<void> {
  await world.ask({ action: 'stop', runId });
  await world.settle();
  world.end(`research-${runId}-a001`, 'Stopped');
  await world.tick();
}

test('the files of a run that is over are counted first, with their price, and deleted when it is confirmed', async () => {
  await end();
  for (const name of ['data-bucket/tokens/a', `checkpoint-bucket/runs/nlp/${runId}0/step-1/DONE`])
    world.s3.put(name, 'x');
  const before = names();
  const found = (await remove()) as DeleteAnswer;
  const counted = found.places.reduce((sum, { objects }) => sum + objects, 0);
  expect(counted).toBe(ownNames().length);
  expect(found).toMatchObject({ ok: true, isWhole: true, deleted: 0, kept: [] });
  const bytes = found.places.reduce((sum, place) => sum + place.bytes, 0);
  expect(found.usdPerMonth).toBeCloseTo((bytes / 1e9) * 0.023, 12);
  expect(names()).toEqual(before);

  const answer = (await remove(true)) as DeleteAnswer;
  expect(answer).toMatchObject({ deleted: counted, usdPerMonth: 0 });
  expect(ownNames()).toEqual([]);
  expect(before.filter((name) => !names().includes(name))).toHaveLength(counted);
  expect(await remove(true)).toMatchObject({ deleted: 0 });
  const lines = (await world.store.timeline(runId)).filter(({ what }) => what === 'files-deleted');
  expect(lines).toHaveLength(1);
});

test('a run whose files were deleted is not resumed', async () => {
  await end();
  await remove(true);
  expect(await world.ask({ action: 'resume', runId })).toMatchObject({ issues: [{ rule: 'run/not-resumable' }] });
  expect((await world.store.find(runId))?.state).toBe('stopped');
});

test('nothing of a live run is deleted, nor of a run of another team', async () => {
  const before = names();
  expect(await issues(remove(true))).toEqual(['delete/live']);
  await end();
  expect(await issues(remove(true, OTHER_TEAM))).toEqual(['run/unknown']);
  expect(names()).toEqual(expect.arrayContaining(before));
});

test('files that a run which is not over starts from, or reads, are kept', async () => {
  await end();
  const startFrom = `${RUN_FILE}checkpoints: { startFrom: ${runId} }\n`.replace('name: pretrain', 'name: next');
  const next = await world.launch(startFrom);
  const before = names();
  expect(await issues(remove(true))).toEqual(['delete/in-use']);
  expect(names()).toEqual(before);
  await world.ask({ action: 'stop', runId: next });
  await world.settle();
  await world.tick();
  expect(world.s3.mock.commandCalls(DeleteObjectsCommand)).toEqual([]);
});

test('a run that is resumed while its files are to be deleted keeps them', async () => {
  await end();
  const before = names();
  const find = world.store.findOrUnreadable.bind(world.store);
  world.store.findOrUnreadable = async (id) => {
    const seen = await find(id);
    world.store.findOrUnreadable = find;
    await world.ask({ action: 'resume', runId });
    return seen;
  };
  expect(await issues(remove(true))).toEqual(['delete/live']);
  expect(names()).toEqual(expect.arrayContaining(before));
});
