import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunIntent } from '../../../lib/control/shared/items';
import { readIntent, readRecord } from '../../../lib/control/shared/stored';
import { fromStoredNames, toStoredNames } from '../../../lib/control/shared/stored-names';
import { loadRun } from '../../../lib/core/config/load';
import { CLASS_POLICY } from '../../../lib/core/lifecycle/budgets';
import type { FailureClass } from '../../../lib/core/lifecycle/record';
import { admitted, policy, running } from '../../core/lifecycle/support/records';
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

  test('that an older version wrote has the values that it acted by, and keeps what it has', () => {
    const whole = stored(
      running({ queuedAt: 1, policy: policy({ writesHeartbeats: false, preemptible: true, keepAliveSeconds: 60 }) }),
    );
    const settings = [
      'keepsCheckpoints',
      'beats',
      'keepAliveSeconds',
      'spareInstances',
      'lossPolicy',
      'preemptible',
    ] as const;
    fc.assert(
      fc.property(fc.subarray([...settings]), fc.boolean(), fc.boolean(), (missing, seesSteps, isQueued) => {
        const { queuedAt, ...rest } = whole;
        const kept = Object.entries({ ...whole.policy, seesSteps }).filter(([key]) => !missing.includes(key as never));
        const older = { ...rest, ...(isQueued && { queuedAt }), policy: Object.fromEntries(kept) };
        const initial = {
          keepsCheckpoints: true,
          writesHeartbeats: seesSteps,
          keepAliveSeconds: 0,
          spareInstances: 0,
          lossPolicy: 'stop',
          preemptible: false,
        };
        expect(readRecord(JSON.stringify(older))).toEqual({
          ...whole,
          queuedAt: isQueued ? 1 : whole.createdAt,
          policy: { ...initial, ...Object.fromEntries(kept) },
        });
      }),
    );
  });

  test('comes back from the names of the run table, and the tags of the user keep their keys', () => {
    const record = running({ tags: { rungId: 'mine', capacityOptionId: 'mine too' } });
    const item = toStoredNames(record);
    expect(item).toMatchObject({ rungId: 'as-written', tags: record.tags });
    expect(item).not.toHaveProperty('capacityOptionId');
    expect(fromStoredNames(item)).toEqual(record);
  });

  test('that an older version wrote without lists and counters has empty ones', () => {
    const { badCheckpoints: _, outbox: __, ...older } = running();
    expect(readRecord(JSON.stringify(older))).toMatchObject({ badCheckpoints: [], outbox: [], state: 'running' });
  });
});
