import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { simulate } from '../../lib/testing';

/** A simulated day takes a second; on a busy machine several. */
vi.setConfig({ testTimeout: 120_000 });

const FOLDER = path.join(__dirname, '..', 'scenarios');
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));

test.each(FILES)('every invariant holds in %s', async (file) => {
  const { invariants } = await simulate(path.join(FOLDER, file));
  expect(invariants.filter(({ holds }) => !holds)).toEqual([]);
});

test('the same file and seed give the same bytes', async () => {
  const file = path.join(FOLDER, FILES[0] ?? '');
  const [first, second] = [await simulate(file, { seed: 7 }), await simulate(file, { seed: 7 })];
  expect(JSON.stringify(first)).toBe(JSON.stringify(second));
  expect(JSON.stringify(await simulate(file, { seed: 8 }))).not.toBe(JSON.stringify(first));
});
