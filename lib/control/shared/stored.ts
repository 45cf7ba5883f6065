import { z } from 'zod';
import { fill } from '../../core/config/formats/json';
import { MAX_TIME } from '../../core/config/formats/numbers';
import { resolveRun } from '../../core/config/resolve-run';
import type { TimelineEvent } from '../../core/lifecycle/action';
import type { GpuEvidence } from '../../core/lifecycle/health/known-gpus';
import { type Attempt, attempt, type RunRecord, runRecord } from '../../core/lifecycle/record';
import { fromStoredNames, type QueueDocument, type RunIntent } from './items';

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
const queue = loose({
  usage: loose({ at: z.number(), hours: byTeam, held: byTeam }),
  nextCreateAt: time.optional(),
  shares: z.record(text, z.number()),
  limits: z.record(text, z.number()).optional(),
});
const gpuEvidence = loose({
  uuid: text,
  team: text,
  kind: z.enum(['gpu', 'host', 'passed']),
  at: time,
  runId: text,
  jobName: text,
  host: text,
  reason: text,
});

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

/** An attempt in a document; undefined when it is not one. */
export const findAttempt = (json: string): Attempt | undefined => orUndefined<Attempt>(attempt, json, fromStoredNames);

/** A timeline event in a document; undefined when it is not one. */
export const findLine = (json: string): TimelineEvent | undefined => orUndefined<TimelineEvent>(line, json);

/** A list of names in a document; undefined when it is not one. */
export const findNames = (json: string) => orUndefined<string[]>(z.array(text), json);

/** Digests by name in a document; undefined when it has none. */
export const findDigests = (json: string) => orUndefined<Record<string, string>>(z.record(text, text), json);

/** What a job has reported about a GPU; undefined when the document is not that. */
export const findGpuEvidence = (json: string) => orUndefined<GpuEvidence>(gpuEvidence, json);

/** The state of the queue in a document; undefined when it is not one: the next pass. */
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
