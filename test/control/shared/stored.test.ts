import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RunIntent } from '../../../lib/control/shared/items';
import { eventItemOf, fromStoredNames, textOf, toStoredNames } from '../../../lib/control/shared/items';
import { findLine, readIntent, readRecord } from '../../../lib/control/shared/stored';
import { loadRun } from '../../../lib/core/config/load';
import { CLASS_POLICY } from '../../../lib/core/lifecycle/budgets';
import type { FailureClass } from '../../../lib/core/lifecycle/record';
import { admitted, running } from '../../core/lifecycle/support/records';
import { RUN_FILES, RUNS } from '../../support/run-files';

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
  test.each(RUN_FILES)('of today is read as it was written: %s', (file) => {
    const intent = stored(intentOf(file));
    expect(readIntent(JSON.stringify(intent))).toEqual(intent);
  });

  test.each(RUN_FILES)('that an older version wrote without a field gets its default: %s', (file) => {
    const intent = stored(intentOf(file));
    const older = stored(intent) as unknown as {
      spec: { compute: Record<string, unknown>; limits: Record<string, unknown> };
    };
    delete older.spec.compute.spareInstances;
    delete older.spec.limits.retryInternalErrors;
    expect(readIntent(JSON.stringify(older))).toEqual(intent);
  });

  test('keeps what it says against the defaults of today', () => {
    const intent = stored(intentOf(RUN_FILES[0] ?? ''));
    intent.spec.limits.maxAttempts = 7;
    expect(readIntent(JSON.stringify(intent)).spec.limits.maxAttempts).toBe(7);
  });
});

describe('a record', () => {
  test.each([admitted(), running()])('of today is read as it was written', (record) => {
    expect(readRecord(JSON.stringify(record))).toEqual(stored(record));
  });

  test.each(Object.keys(CLASS_POLICY) as FailureClass[])(
    'of an attempt that ended with class %s is read',
    (failureClass) => {
      const { attempt, ...record } = running();
      if (!attempt) throw new Error('the record has an attempt');
      const ended = stored({ ...record, attempt: { ...attempt, failureClass } });
      expect(readRecord(JSON.stringify(ended))).toEqual(ended);
    },
  );

  test('comes back from the names of the run table, and the tags of the user keep their keys', () => {
    const record = running({ tags: { rungId: 'mine', capacityOptionId: 'mine too' } });
    const item = toStoredNames(record);
    expect(item).toMatchObject({ rungId: 'as-written', tags: record.tags });
    expect(item).not.toHaveProperty('capacityOptionId');
    expect(fromStoredNames(item)).toEqual(record);
  });

  test('a line of the timeline comes back with the names of the code in its evidence', () => {
    const evidence = { step: 7, heartbeatAt: 1, progress: { heartbeatAt: 2 }, capacityOptionId: 'as-written' };
    const line = { at: 0, what: 'stop-decided' as const, text: 'x', evidence };
    expect(findLine(textOf(eventItemOf('r', 1, 0, line)))).toEqual(line);
  });
});
