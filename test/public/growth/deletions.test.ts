// Situations of public threads about deleting what a run left; test/public/growth.md lists the outcomes.
import { DeleteObjectsCommand } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../../control/support/fake-world';

let world: FakeWorld;
let runId: string;
const folder = (id: string) => `checkpoint-bucket/runs/nlp/${id}/`;
const names = () => [...world.s3.objects.keys()];
const remove = () => world.ask({ action: 'delete', runId, confirm: true });

beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
  world.train(`research-${runId}-a001`);
  world.commit(runId, 10);
  await world.tick();
});
async function stopped(): Promise<void> {
  await world.ask({ action: 'stop', runId });
  await world.settle();
  world.end(`research-${runId}-a001`, 'Stopped');
  await world.tick();
}

test('mlflow/mlflow#24821: a run whose name begins like the deleted one keeps its files', async () => {
  await stopped();
  world.s3.put(`${folder(`${runId}-2`)}step-1/DONE`, 'x');
  await remove();
  expect(names()).toContain(`${folder(`${runId}-2`)}step-1/DONE`);
  expect(names().filter((name) => name.startsWith(folder(runId)))).toEqual([]);
});

test('vm0-ai/vm0#22148: files in a place that several runs share are kept, and named', async () => {
  const shared = 's3://checkpoint-bucket/runs/nlp/shared/';
  const file = `${RUN_FILE}checkpoints: { mode: direct, s3: "${shared}" }\n`.replace('name: pretrain', 'name: shares');
  runId = await world.launch(file);
  world.s3.put('checkpoint-bucket/runs/nlp/shared/step-1/COMMITTED.json', '{}');
  await stopped();
  expect(await remove()).toMatchObject({ ok: true, kept: [shared] });
  expect(names()).toContain('checkpoint-bucket/runs/nlp/shared/step-1/COMMITTED.json');
});

test('polyaxon/polyaxon#1273: an object that cannot be deleted is an error, and the next call goes on', async () => {
  await stopped();
  const failing = { Errors: [{ Key: 'k', Code: 'InternalError', Message: 'try again' }] };
  world.s3.mock
    .on(DeleteObjectsCommand)
    .resolvesOnce(failing)
    .callsFake((input) => {
      for (const { Key } of input.Delete.Objects) world.s3.objects.delete(`${input.Bucket}/${Key}`);
      return {};
    });
  await expect(remove()).rejects.toThrow('cannot be deleted: InternalError');
  expect(await remove()).toMatchObject({ ok: true });
  expect(names().filter((name) => name.startsWith(folder(runId)))).toEqual([]);
});

test('morluto/flameox#242: a start that is not confirmed yet keeps the checkpoints from which it will begin', async () => {
  await stopped();
  const runFile = `${RUN_FILE}checkpoints: { startFrom: ${runId} }\n`.replace('name: pretrain', 'name: next');
  const started = await world.ask({ action: 'start', runFile, clientRequestId: 'next' });
  expect(started).toMatchObject({ ok: true });
  const before = names();
  expect(await remove()).toMatchObject({ ok: false, issues: [{ rule: 'delete/in-use' }] });
  expect(before.filter((name) => !names().includes(name))).toEqual([]);
});

test('wandb/wandb#10459: after a deletion nothing of the run is stored, and its storage costs nothing', async () => {
  await stopped();
  for (const name of ['heartbeat.json', 'step-10/half', 'logs/a']) world.s3.put(`${folder(runId)}${name}`, 'x');
  const answer = await remove();
  expect(answer).toMatchObject({ ok: true, usdPerMonth: 0 });
  expect(names().filter((name) => name.includes(`/${runId}/`))).toEqual([]);
});
