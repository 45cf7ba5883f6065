import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';

const SCRIPT = path.resolve('scripts/ci-budget.mjs');

test('a run of CI ends with the seconds of each suite, and with the budget where there is one', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-budget-'));
  mkdirSync(path.join(folder, '.slipway/test'), { recursive: true });
  writeFileSync(path.join(folder, '.slipway/test/seconds.json'), '{"vitest unit":124.2,"pytest":300}');
  const words = ['npm ci=31', 'npm test=500', 'npm run test:long (one part)=99'];
  const said = execFileSync(process.execPath, [SCRIPT, ...words], { cwd: folder, encoding: 'utf8' });
  expect(said.trim().split('\n')).toEqual([
    'suite                             seconds  budget',
    'npm ci                                 31',
    'npm test                              500     360  exceeded',
    '  vitest unit                         124',
    '  pytest                              300',
    'npm run test:long (one part)           99',
    'whole run                             630    1500',
  ]);
});

test('a run that ends before its tests says what it has', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-budget-'));
  const said = execFileSync(process.execPath, [SCRIPT, 'npm ci=31'], { cwd: folder, encoding: 'utf8' });
  expect(said).toContain('whole run                              31    1500\n');
});
