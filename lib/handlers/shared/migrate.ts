import { freshBudgets, type RunRecord } from '../../lifecycle/record';
import { resolveRun } from '../../spec/resolve-run';
import type { RunIntent } from './items';

/**
 * An intent as today's code expects it. What it says stays; what an older version did not know yet gets the default of today, from the
 * run file as written, which every intent carries.
 */
export function migrateIntent(intent: RunIntent): RunIntent {
  const { written } = intent.spec;
  return written ? { ...intent, spec: fill(intent.spec, resolveRun(written)) } : intent;
}

/** A record as today's code expects it: lists, counters and states that an older version did not write are empty. */
export function migrateRecord(record: RunRecord): RunRecord {
  return fill(record, {
    badCheckpoints: [],
    alerts: [],
    outbox: [],
    after: [],
    priority: 0,
    budgets: freshBudgets(),
    committed: null,
    spentUsd: null,
  } as Partial<RunRecord> as RunRecord);
}

/** `stored`, with what it lacks from `defaults`, group by group. Lists are taken whole; null is a value. */
function fill<T>(stored: T, defaults: T): T {
  if (stored === undefined) return defaults;
  if (!isGroup(stored) || !isGroup(defaults)) return stored;
  const keys = new Set([...Object.keys(stored), ...Object.keys(defaults)]);
  const filled = [...keys].map((key) => [key, fill(stored[key], defaults[key])]);
  return Object.fromEntries(filled.filter(([, value]) => value !== undefined)) as T;
}

const isGroup = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
