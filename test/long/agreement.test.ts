// Scenarios that both worlds play; one of them is among the tests of every change (test/long/always/agreement.test.ts).
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CASES, NOT_COMPARED, OTHERS } from './agreement/cases';
import { testsOfAgreement } from './agreement/suite';

testsOfAgreement(CASES);

test('every scenario is played in both worlds, or stands in a list that says why not', () => {
  const files = readdirSync(path.join(__dirname, '../scenarios')).filter((file) => file.endsWith('.yaml'));
  const said = [...[...CASES, ...NOT_COMPARED].map(({ scenario }) => scenario), ...Object.keys(OTHERS)];
  expect(said.sort()).toEqual(files.map((file) => path.basename(file, '.yaml')).sort());
});
