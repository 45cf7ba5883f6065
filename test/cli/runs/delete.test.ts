import { expect, test } from 'vitest';
import { whatIsLeft } from '../../../lib/cli/runs/change';

const places = [
  { uri: 's3://c/runs/nlp/a/', objects: 412, bytes: 3.2e12 },
  { uri: 's3://r/runs/nlp/a/', objects: 7, bytes: 1e9 },
];
const FOUND = { runId: 'a', places, isWhole: true, usdPerMonth: 73.6, kept: [], deleted: 0 };

test('what a run left is shown with its size and price before it is deleted', () => {
  const [first, , sum] = whatIsLeft(FOUND);
  expect(first).toBe('  s3://c/runs/nlp/a/  412 objects, 2.9 TiB');
  expect(sum).toBe('a has 2.9 TiB in S3, $73.60 per month; the run cannot be resumed once they are deleted');
});

test('what was not counted, has no known price, or is kept is said', () => {
  const lines = whatIsLeft({ ...FOUND, isWhole: false, usdPerMonth: null, kept: ['s3://c/runs/nlp/shared/'] });
  expect(lines.slice(2)).toEqual([
    'a has more than 2.9 TiB in S3; the run cannot be resumed once they are deleted',
    '  kept: s3://c/runs/nlp/shared/, which other runs may use',
  ]);
});
