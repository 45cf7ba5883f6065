import { freshBudgets, type RunRecord } from '../../lifecycle/record';
import { resolveRun } from '../../spec/resolve-run';
import type { RunIntent } from './items';

/**
 * Upgrades an intent to the current format. Existing values stay; missing fields get the current defaults, computed from the run file as
 * written, which every intent contains.
 */
export function migrateIntent(intent: RunIntent): RunIntent {
  const { written } = intent.spec;
  return written ? { ...intent, spec: fill(intent.spec, resolveRun(written)) } : intent;
}

/** Upgrades a record to the current format: lists, counters and states that an older version did not write are empty. */
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

/** Adds to `stored` the fields that it lacks, from `defaults`, section by section. Lists are not merged; null counts as a value. */
function fill<T>(stored: T, defaults: T): T {
  if (stored === undefined) return defaults;
  if (!isGroup(stored) || !isGroup(defaults)) return stored;
  const keys = new Set([...Object.keys(stored), ...Object.keys(defaults)]);
  const filled = [...keys].map((key) => [key, fill(stored[key], defaults[key])]);
  return Object.fromEntries(filled.filter(([, value]) => value !== undefined)) as T;
}

const isGroup = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
