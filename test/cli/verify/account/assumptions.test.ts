import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { DEPLOY_PROBES } from '../../../../lib/cli/verify/account/deploy/deploy-world';
import { assumptions, LEVELS, type Level } from '../../../../lib/cli/verify/account/probe';
import { EFA_PROBES } from '../../../../lib/cli/verify/account/probes/efa';
import { TRAIN_PROBES } from '../../../../lib/cli/verify/account/probes/train';
import { READ_PROBES } from '../../../../lib/cli/verify/levels';
import { assumptionsOf } from '../../../support/assumptions-of';

const PAGE = readFileSync(path.join(__dirname, '../../../../docs/assumptions.md'), 'utf8');
/** The cells of each row: id, claim, basis, used by, if it is wrong, embedded AWS, probe. */
const ROWS = PAGE.split('\n')
  .filter((line) => line.startsWith('| <a id='))
  .map((line) => line.slice(2, -2).split(' | '));
const PROBES: Record<Level, readonly { assumption: string }[]> = {
  read: READ_PROBES,
  deploy: DEPLOY_PROBES,
  train: TRAIN_PROBES,
  efa: EFA_PROBES,
};

test('no two assumptions have one id', () => {
  const ids = ROWS.map(([anchor = '']) => /^<a id="([\w-]+)"><\/a>`\1`$/.exec(anchor)?.[1]);
  expect(ids).toEqual([...assumptions().keys()]);
});

test.each(LEVELS)(
  'every assumption of level %s has exactly one probe there, and every probe an assumption',
  (level) => {
    const probes = PROBES[level].map(({ assumption }) => assumption).sort();
    expect(probes).toEqual(assumptionsOf(level).sort());
  },
);

test('the product rests on 60 assumptions or more, each with a claim that is a sentence', () => {
  expect(assumptions().size).toBeGreaterThanOrEqual(60);
  expect([...assumptions().values()].filter(({ claim }) => !claim.endsWith('.')).map(({ id }) => id)).toEqual([]);
});

test('every row has a basis, what relies on it, what happens if it is wrong, what the embedded AWS shows, and a probe', () => {
  const wrong = ROWS.filter(
    ([, , basis = '', usedBy, ifWrong, embedded = '', probe = '', ...more]) =>
      !/^(documented|reported|inferred|guessed): ./.test(basis) ||
      !usedBy ||
      !ifWrong ||
      !['repeats it', 'independent', 'not modelled'].includes(embedded) ||
      ![...LEVELS, 'open'].includes(probe) ||
      more.length > 0,
  );
  expect(wrong).toEqual([]);
});

test('the page counts its rows', () => {
  const open = ROWS.filter((cells) => cells[6] === 'open').length;
  const repeated = ROWS.filter((cells) => cells[5] === 'repeats it').length;
  expect(PAGE).toContain(
    `${ROWS.length} assumptions: ${ROWS.length - open} have a probe, ${open} are open; the embedded AWS only repeats ${repeated} of them.`,
  );
});
