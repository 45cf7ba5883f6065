import { describe, expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../../../support/runs';

const many = (count: number, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]));

describe('what the API takes, less what the launcher sends', () => {
  test.each([
    ['tags', many(46, 'v'), many(47, 'v')],
    ['environmentVariables', many(96, 'v'), many(97, 'v')],
    ['hyperparameters', many(100, 'v'), many(101, 'v')],
  ])('%s', (section, fits, tooMany) => {
    expect(issuesOf({ ...BASE, [section]: fits }, 'limits/')).toEqual([]);
    expect(issuesOf({ ...BASE, [section]: tooMany }, 'limits/')).toMatchObject([{ level: 'error', path: section }]);
  });

  test("the environment's tags are on every job too; one that replaces a tag of the run counts once", () => {
    const descriptor = { ...DESCRIPTOR, tags: { k0: 'theirs', CostCenter: '1234', Owner: 'ml' } };
    expect(issuesOf({ ...BASE, tags: many(44, 'v') }, 'limits/', { descriptor })).toEqual([]);
    expect(issuesOf({ ...BASE, tags: many(45, 'v') }, 'limits/', { descriptor }).map(({ message }) => message)).toEqual(
      ['tags: must be at most 44 (50 minus those of the launcher and 2 of the environment), got 45; remove some'],
    );
  });

  test('nothing is said of an environment without tags of its own', () => {
    expect(issuesOf({ ...BASE, tags: many(47, 'v') }, 'limits/').map(({ message }) => message)).toEqual([
      'tags: must be at most 46 (50 minus those of the launcher), got 47; remove some',
    ]);
  });

  test('40 metrics of the user: ours give way', () => {
    const metrics = Array.from({ length: 40 }, (_, i) => ({ name: `m${i}`, regex: '(a)' }));
    expect(issuesOf({ ...BASE, observability: { metrics } }, 'limits/')).toEqual([]);
  });
});
