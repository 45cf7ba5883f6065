import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunIntent } from '../../../lib/control/shared/items';
import { readIntent, readRecord } from '../../../lib/control/shared/stored';
import { loadRun } from '../../../lib/core/config/load';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { admitted, running } from '../../core/lifecycle/support/records';

const RUNS = path.join(__dirname, '..', '..', '..', 'runs');
const specOf = (file: string) => {
  const { value } = loadRun(readFileSync(path.join(RUNS, file), 'utf8'));
  if (!value) throw new Error(`${file} is no run file`);
  return value;
};
const intentOf = (file: string): RunIntent => ({
  spec: specOf(file),
  code: null,
  driver: { uri: 's3://artifacts/drivers/0f3a9c/', hash: '0f3a9c' },
  secret: 'a'.repeat(64),
  trainingImageUri: null,
});
const stored = <T>(document: T): T => JSON.parse(JSON.stringify(document));

describe('an intent', () => {
  const files = readdirSync(RUNS).filter((f) => f.endsWith('.yaml'));

  test.each(files)('of today is read as it was written: %s', (file) => {
    const intent = stored(intentOf(file));
    expect(readIntent(JSON.stringify(intent))).toEqual(intent);
  });

  test.each(files)('that an older version wrote without a field gets its default: %s', (file) => {
    const intent = stored(intentOf(file));
    const older = stored(intent) as unknown as {
      spec: { compute: Record<string, unknown>; limits: Record<string, unknown> };
    };
    delete older.spec.compute.spareInstances;
    delete older.spec.limits.retryInternalErrors;
    expect(readIntent(JSON.stringify(older))).toEqual(intent);
  });

  test('keeps what it says against the defaults of today', () => {
    const intent = stored(intentOf(files[0] ?? ''));
    intent.spec.limits.maxAttempts = 7;
    expect(readIntent(JSON.stringify(intent)).spec.limits.maxAttempts).toBe(7);
  });
});

describe('a record', () => {
  test.each([admitted(), running()])('of today is read as it was written', (record) => {
    expect(readRecord(JSON.stringify(record))).toEqual(stored(record));
  });

  test('that an older version wrote without lists and counters has empty ones', () => {
    const older = stored(running()) as Partial<RunRecord>;
    delete older.badCheckpoints;
    delete older.outbox;
    expect(readRecord(JSON.stringify(older))).toMatchObject({ badCheckpoints: [], outbox: [], state: 'running' });
  });
});
