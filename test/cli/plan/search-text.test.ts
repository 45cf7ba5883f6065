import { expect, test } from 'vitest';
import { searchText } from '../../../lib/cli/plan/text/plan-text';

test('a search whose layouts the rules reject says which rule', () => {
  const refusal = { rule: 'r', level: 'error' as const, path: 'training', message: 'training: must be another' };
  expect(searchText({ considered: 1200, seconds: 3, candidates: [], refusal })).toBe(
    '1,200 layouts in 3 s; none is valid: training: must be another',
  );
});

test('a search that finds nothing says so, without an empty table', () => {
  expect(searchText({ considered: 1200, seconds: 3, candidates: [] })).toBe(
    '1,200 layouts in 3 s; none fits: use more instances, or a type with more memory',
  );
});
