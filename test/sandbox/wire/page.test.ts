import { expect, test } from 'vitest';
import { page } from '../../../lib/sandbox/wire/api-call';

test('pages hold what was asked for and lead on until the end', () => {
  const first = page(['a', 'b', 'c'], { MaxResults: 2 }, 10);

  expect(first.items).toEqual(['a', 'b']);
  expect(page(['a', 'b', 'c'], { MaxResults: 2, NextToken: first.nextToken }, 10)).toEqual({
    items: ['c'],
    nextToken: undefined,
  });
  expect(() => page(['a'], { NextToken: 'x' }, 10)).toThrow('The pagination token is not valid');
});
