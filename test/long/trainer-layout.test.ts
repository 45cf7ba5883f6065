// Rules and trainer judge many drawn layouts alike; `npm test` draws fewer.
import { expect, test } from 'vitest';
import { compareWithTrainer } from '../core/rules/compare-with-trainer';

test('rules refuse exactly what the trainer would refuse on the instances, and both infer the same degrees', () => {
  expect(compareWithTrainer(5000)).toBeGreaterThan(500);
});
