import { describe, expect, test } from 'vitest';
import { planDocument } from '../../../lib/core/admission';
import type { PlanDocument } from '../../../lib/core/admission/training-plan';
import { PLANNABLE, runOf } from '../../support/runs';

const run = (changes: object = {}) =>
  runOf({
    ...PLANNABLE,
    ...changes,
  });
const documentOf = (changes: object = {}): PlanDocument => {
  const found = planDocument(run(changes), { region: 'us-west-2' });
  if (Array.isArray(found)) throw new Error(JSON.stringify(found));
  return found;
};

describe('the document of a plan', () => {
  test('has no sizes where the run names none, and names the nearest published run where there is one', () => {
    const document = documentOf({ code: { source: './src', entryPoint: 'train.py' } });
    expect('sizes' in document).toBe(false);
    expect(document.nearest).toBeDefined();
    expect(document.spares).toBeDefined();
  });

  test('plans each size of an elastic run, largest first', () => {
    const { sizes = [] } = documentOf({
      compute: { instanceType: 'ml.p5.48xlarge', instanceCount: { min: 1, max: 4 } },
    });
    expect(sizes.map(({ instanceCount }) => instanceCount)).toEqual([4, 2, 1]);
    const [four, , one] = sizes;
    expect(one?.hours).toBeGreaterThan(3 * (four?.hours ?? Number.NaN));
    expect(one?.memoryGiB).toBeGreaterThan(four?.memoryGiB ?? Number.NaN);
  });

  test('fails: issues where the run cannot be planned', () => {
    const issues = planDocument(run({ model: undefined, code: { source: './src', entryPoint: 't.py' } }), {
      region: 'us-west-2',
    });
    expect(issues).toMatchObject([{ path: 'model' }]);
  });
});
