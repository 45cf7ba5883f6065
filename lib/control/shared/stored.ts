import { z } from 'zod';
import { fill } from '../../core/config/formats/json';
import { MAX_TIME } from '../../core/config/formats/numbers';
import { resolveRun } from '../../core/config/resolve-run';
import type { TimelineEvent } from '../../core/lifecycle/action';
import { type GpuEvidence, gpuEvidence } from '../../core/lifecycle/health/known-gpus';
import { type Attempt, attempt, type RunRecord, runRecord } from '../../core/lifecycle/record';
import { fromStoredNames, type RunIntent } from './items';

/** Documents of the run table as they are read: a restore, an edit by hand or another version may have left anything in them. */

/** An item that cannot be read, with its run and team as its key and attributes name them. */
export class UnreadableItem extends Error {
  override readonly name = 'UnreadableItem';
  constructor(
    readonly runId: string,
    readonly team: string,
    /** `RUN` or `INTENT`. */
    readonly item: string,
    readonly why: string,
  ) {
    super(`item ${item} of run ${runId} cannot be read: ${why}`);
  }
}

/** What a read gives, or the item that cannot be read: that stops nothing that only refers to it. */
export async function orUnreadable<T>(read: Promise<T>): Promise<T | UnreadableItem> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof UnreadableItem) return error;
    throw error;
  }
}

const time = z.number().min(0).max(MAX_TIME);
const text = z.string();
const loose = z.looseObject;

const intent = loose({
  spec: loose({ compute: loose({}), checkpoints: loose({ s3: text }), limits: loose({}), code: loose({}) }),
  code: loose({ uri: text }).nullable(),
  driver: loose({ uri: text, hash: text }),
  secret: text,
});

const line = loose({ at: time, what: text, text, evidence: loose({}) });
const byTeam = z.record(text, z.record(text, z.number()));
const queue = z.object({
  usage: z.object({ at: z.number(), hours: byTeam, held: byTeam }),
  /** When the next create call may be made, epoch milliseconds. @default - now */
  nextCreateAt: time.optional(),
  shares: z.record(text, z.number()),
  /** Limits of the pools that waiting runs need, by name; absent where none is known. @default - none */
  limits: z.record(text, z.number()).optional(),
});
/** State that the queue keeps between two passes, and the shares that other readers need to compute the same order. */
export type QueueDocument = z.infer<typeof queue>;

/** The value itself, once it has the shape; its own type says more than the schema. Throws what is wrong first. */
function checked<T>(schema: z.ZodType, value: T): T {
  const { error } = schema.safeParse(value);
  if (!error) return value;
  const [first] = error.issues;
  throw new Error(`${first?.path.join('.') || 'the document'}: ${first?.message}`);
}

/** The record in a document. Throws when it is not one. */
export const readRecord = (json: string): RunRecord =>
  checked(runRecord, fromStoredNames(JSON.parse(json) as RunRecord));

/** The intent in a document. Throws when it is not one. */
export const readIntent = (json: string): RunIntent => checked(intent, migrateIntent(JSON.parse(json) as RunIntent));

/** Finds documents of one kind. Each gives undefined for a document that is not one. */
export const findAttempt = (json: string) => orUndefined<Attempt>(attempt, json, fromStoredNames);
export const findLine = (json: string) => orUndefined<TimelineEvent>(line, json, fromStoredNames);
export const findNames = (json: string) => orUndefined<string[]>(z.array(text), json);
export const findDigests = (json: string) => orUndefined<Record<string, string>>(z.record(text, text), json);
export const findGpuEvidence = (json: string) => orUndefined<GpuEvidence>(gpuEvidence, json);
export const findQueueDocument = (json: string) => orUndefined<QueueDocument>(queue, json);

function orUndefined<T>(schema: z.ZodType, json: string, migrate = (value: T): T => value): T | undefined {
  if (json === '') return undefined;
  try {
    return checked(schema, migrate(JSON.parse(json) as T));
  } catch {
    return undefined;
  }
}

/**
 * Upgrades an intent to the current format. Existing values stay; missing fields get the current defaults, computed from the run file as
 * written, which every intent contains.
 */
function migrateIntent(intent: RunIntent): RunIntent {
  const { written } = intent.spec;
  return written ? { ...intent, spec: fill(intent.spec, resolveRun(written)) } : intent;
}
