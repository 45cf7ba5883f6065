import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  ASSUMPTIONS,
  assumptionsOf,
  assumptionsPage,
  DEPLOY_PROBES,
  EFA_PROBES,
  LEVELS,
  type Level,
  READ_PROBES,
  TRAIN_PROBES,
} from '../../../../lib/cli/verify/account';

const ROOT = path.join(__dirname, '../../../..');
const PROBES: Record<Level, readonly { assumption: string }[]> = {
  read: READ_PROBES,
  deploy: DEPLOY_PROBES,
  train: TRAIN_PROBES,
  efa: EFA_PROBES,
};

test('no two assumptions have one id', () => {
  const ids = ASSUMPTIONS.map(({ id }) => id);
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
});

test.each(LEVELS)(
  'every assumption of level %s has exactly one probe there, and every probe an assumption',
  (level) => {
    const probes = PROBES[level].map(({ assumption }) => assumption).sort();
    expect(probes).toEqual(
      assumptionsOf(level)
        .map(({ id }) => id)
        .sort(),
    );
  },
);

test('the product rests on 60 assumptions or more, each with a claim that is a sentence', () => {
  expect(ASSUMPTIONS.length).toBeGreaterThanOrEqual(60);
  expect(ASSUMPTIONS.filter(({ claim }) => !claim.endsWith('.')).map(({ id }) => id)).toEqual([]);
});

test('docs/assumptions.md is the page of the table', () => {
  expect(readFileSync(path.join(ROOT, 'docs/assumptions.md'), 'utf8')).toBe(assumptionsPage());
});
