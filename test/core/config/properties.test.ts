import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import { checkRun } from '../../../lib/core/rules';
import { mutatedRunFiles, validRunFiles } from '../../support/arbitrary-runs';
import { draws } from '../../support/draws';

test('generated valid run files have no errors', () => {
  fc.assert(
    fc.property(validRunFiles, (file) => {
      const loaded = loadRun(JSON.stringify(file));
      const issues = loaded.value ? checkRun(loaded.value) : loaded.issues;
      expect(issues.filter((i) => i.level === 'error')).toEqual([]);
    }),
    { numRuns: draws(400) },
  );
});

test('mutated run files give issues in our form, never an exception', () => {
  fc.assert(
    fc.property(mutatedRunFiles, (file) => {
      const loaded = loadRun(JSON.stringify(file));
      const issues = loaded.value ? checkRun(loaded.value) : loaded.issues;
      for (const found of issues) expect(found.message).toMatch(/; /);
    }),
    { numRuns: draws(400) },
  );
});

test('any text is either read or refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'grapheme' })), (text) => {
      const { value, issues } = loadRun(text);
      expect(value === undefined).toBe(issues.some((i) => i.level === 'error'));
    }),
    { numRuns: draws(500) },
  );
});
