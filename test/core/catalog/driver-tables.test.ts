import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { EXIT_CODES } from '../../../lib/core/catalog/exit-codes';
import { driverTables, peakTable, phaseTable } from '../../../scripts/driver-tables/text';

const CONTAINERS = path.join(__dirname, '../../../containers');

test("the driver's tables are what the catalog says: run `npm run driver:tables`", () => {
  expect(readFileSync(path.join(CONTAINERS, 'driver/slipway_driver/tables.py'), 'utf8')).toBe(driverTables());
  expect(readFileSync(path.join(CONTAINERS, 'trainer/slipway_trainer/peak_tflops.py'), 'utf8')).toBe(peakTable());
  expect(readFileSync(path.join(CONTAINERS, 'trainer/slipway_trainer/phase_seconds.py'), 'utf8')).toBe(phaseTable());
});

test("the trainer's exit codes are those of the catalog", () => {
  const text = readFileSync(path.join(CONTAINERS, 'trainer/slipway_trainer/exits.py'), 'utf8');
  const found = [...text.matchAll(/^([A-Z_]+) = (\d+)$/gm)].map(([, name, code]) => [name, Number(code)]);
  expect(found.length).toBeGreaterThan(4);
  const known = EXIT_CODES.map(({ name, code }) => [name, code]);
  expect(known).toEqual(expect.arrayContaining(found));
});

test('docs/reference/runtime.md has a row for each exit code', () => {
  const page = readFileSync(path.join(__dirname, '../../../docs/reference/runtime.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(rows).toEqual(EXIT_CODES.map(({ code }) => code));
});
