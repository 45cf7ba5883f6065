import { expect, test } from 'vitest';
import {
  activeParameterCount,
  embeddingParameters,
  parameterCount,
  parameterShape,
} from '../../../../lib/core/catalog/model/parameters';
import { PRESETS, presetShape } from '../../../../lib/core/catalog/model/presets';

/** Half a unit of the last digit that a model card prints, and at least 1.5 % for cards that round. */
function tolerance(billions: number): number {
  const digits = String(billions).split('.')[1]?.length ?? 0;
  return Math.max(0.5 * 10 ** -digits, 0.015 * billions);
}

test('there are at least 40 models of today', () => {
  expect(Object.keys(PRESETS).length).toBeGreaterThanOrEqual(40);
});

test.each(Object.entries(PRESETS))(
  '%s has as many parameters as its card says',
  (name, { billions, activeBillions }) => {
    const shape = presetShape(name);
    if (!shape) throw new Error('no shape');
    const counted = parameterShape(shape);
    expect(Math.abs(parameterCount(counted) / 1e9 - billions)).toBeLessThan(tolerance(billions));
    if (activeBillions === undefined) expect(activeParameterCount(counted)).toBe(parameterCount(counted));
    else {
      // Cards round the active parameters, and some leave the embedding out.
      const active = activeParameterCount(counted) / 1e9;
      const ratios = [active, active - embeddingParameters(counted) / 1e9].map((one) => one / activeBillions - 1);
      expect(Math.min(...ratios.map(Math.abs))).toBeLessThan(0.12);
    }
  },
);
