import { expect, test } from 'vitest';
import { RunTruth } from '../../tools/simulation/job/steps/run-truth';
import { runOf } from '../support/runs';
import { PRETRAIN } from './support';

function truth(): RunTruth {
  const behaviour = { totalSteps: 100, secondsPerStep: 10, commitEveryMs: 60_000, startMs: 0, checkpointObjects: 4 };
  return new RunTruth('a', runOf(PRETRAIN), behaviour, {
    place: { bucket: 'checkpoints', prefix: 'a/' },
    heartbeat: undefined,
  });
}

const listed = (run: RunTruth) => run.objects().map(({ key, at }) => [key, at]);

test('a save that died twice at one step left its objects once, as the later one wrote them', () => {
  const run = truth();
  run.tear(20, 1000);
  run.tear(20, 2000);
  expect(listed(run)).toEqual([
    ['step-20/__0_0.distcp', 2000],
    ['step-20/__1_0.distcp', 2000],
  ]);
});

test('a commit completes the folder that a save left behind, and its marker names every object', () => {
  const run = truth();
  run.tear(20, 1000);
  run.commit(20, 2, 3000);
  const names = [0, 1, 2, 3].map((i) => `__${i}_0.distcp`);
  expect(listed(run)).toEqual([...names, 'COMMITTED.json'].map((name) => [`step-20/${name}`, 3000]));
  const marker = JSON.parse(run.objects().at(-1)?.body?.() ?? '{}');
  expect(marker).toMatchObject({ attempt: 2, step: 20, objects: names.map((key) => ({ key, bytes: 1_000_020 })) });
});
