import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { classify } from '../../../lib/core/lifecycle/classify';
import { blamedCheckpoint } from '../../../lib/core/lifecycle/resuming/resume';
import { attempt, checkpoint, failedJob } from './support/records';

const CONTAINERS = path.join(__dirname, '../../../containers');

/** A message as the Python file words it: the first group of the pattern, with its placeholders filled. */
function worded(file: string, pattern: RegExp): string {
  const [, template = ''] = pattern.exec(readFileSync(path.join(CONTAINERS, file), 'utf8')) ?? [];
  const fills = ['PUT s3://b/k', '503', 'SlowDown', 'R1'];
  return template.replace(/%s/g, () => fills.shift() ?? '').replace(/\{\w+\}/g, 'x');
}

test.each([
  ['trainer/slipway_trainer/checkpoint/store.py', /TrainerError\(f"(the storage[^"]+)"\)/],
  ['driver/slipway_s3/client.py', /return "(%s: S3 answered[^"]+)"/],
])('recognises an outage of the storage by the words of %s', (file, pattern) => {
  const reason = `AlgorithmError: ${JSON.stringify({ slipway: 1, code: 75, reason: worded(file, pattern) })}`;
  expect(classify(failedJob(reason), attempt()).failureClass).toBe('platform');
});

test('blames no checkpoint for a save that failed, by the words of the trainer', () => {
  const verdict = { failureClass: 'checkpoint', reason: '', signature: '' } as const;
  const read = attempt({ resumeFrom: checkpoint(300) });
  const text = worded('trainer/slipway_trainer/checkpoint/saver.py', /CheckpointFailed\(f"([^"]+)"\)/);
  expect(text).not.toBe('');
  expect(blamedCheckpoint(read, verdict, false)).toEqual(checkpoint(300));
  expect(blamedCheckpoint(read, { ...verdict, text }, false)).toBeUndefined();
});
