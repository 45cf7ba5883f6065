import { ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import { parseJson } from '../../core/config/formats/json';
import { MAX_STEP } from '../../core/config/formats/numbers';
import { bucketAndKey } from '../../core/config/formats/places';
import type { Observed } from '../../core/lifecycle/observed';
import { type EpochMs, MAX_ATTEMPT, type StartTimes } from '../../core/lifecycle/record';
import { readObject, TooLarge } from '../../shared/aws/read-object';
import { isNamed } from './custom-resource';
import { describeError } from './errors';

/** A heartbeat has a few kilobytes; the job writes it, so every part of it is bounded here. */
const MAX_BYTES = 65_536;
/** Number of restarts in place that one driver reports. */
const MAX_STARTS = 1000;
const MAX_HOSTS = 64;
/** Hosts of an attempt that were found broken, and the GPUs of one host. */
const MAX_REPORTS = 16;
const MAX_GPUS = 16;
/** A start has fewer phases; scripts may declare their own. */
const MAX_PHASES = 20;
/** 2001 to 2100: other times are errors of a clock or of a writer. */
const TIMES = { min: 1e9, max: 4.1e9 };

const text = (length: number) => z.string().transform((value) => value.slice(0, length));
const number = z.number().min(-1e15).max(1e15).nullable().catch(null);
const step = z.int().min(0).max(MAX_STEP).nullable().catch(null);
/** The driver writes epoch seconds. */
const seconds = z
  .number()
  .min(TIMES.min)
  .max(TIMES.max)
  .nullable()
  .catch(null)
  .transform((at) => (at === null ? null : Math.round(at * 1000)));
const start = z.object({
  number: z.int().nonnegative().max(MAX_STARTS),
  firstStep: step,
  firstStepAt: seconds,
  step,
  stepAt: seconds,
  endedAt: seconds,
  phases: z
    .record(z.string().max(64), z.number().min(0).max(1e6))
    .refine((phases) => Object.keys(phases).length <= MAX_PHASES)
    .optional()
    .catch(undefined),
});

/** The job writes them, and other jobs rely on them: anything that is not a UUID is refused. */
const gpuReport = z.object({
  host: text(64),
  kind: z.enum(['gpu', 'host', 'passed']),
  gpus: z.array(z.string().regex(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)).max(MAX_GPUS),
  reason: text(200),
});

/** Fields that an older driver omits or that are malformed count as unknown. */
const heartbeatSchema = z.object({
  attempt: z.int().min(1).max(MAX_ATTEMPT),
  step,
  phase: text(64).catch(''),
  at: z.number().min(TIMES.min).max(TIMES.max).optional().catch(undefined),
  uptimeSeconds: z.number().min(0).max(1e8).optional().catch(undefined),
  starts: z.array(start).max(MAX_STARTS).optional().catch(undefined),
  firstStep: step,
  loss: number,
  lossAlert: text(500).nullable().catch(null),
  slowHost: z
    .object({ host: text(64), what: text(64), ratio: z.number().min(0).max(1e6) })
    .nullable()
    .catch(null),
  stepsPerHour: number,
  usualStepsPerHour: number,
  restarts: z.int().nonnegative().max(1e6).optional().catch(undefined),
  handOver: z.boolean().catch(false),
  setAside: z
    .array(z.object({ host: text(64), reason: text(200) }))
    .transform((hosts) => hosts.slice(0, MAX_HOSTS))
    .optional()
    .catch(undefined),
  evidence: z
    .array(gpuReport)
    .transform((reports) => reports.slice(0, MAX_REPORTS))
    .optional()
    .catch(undefined),
  sparesLeft: z.int().nonnegative().max(1e6).nullable().catch(null),
  gpuUtilizationPercent: z.number().min(0).max(100).optional().catch(undefined),
  endedEarly: text(300).optional().catch(undefined),
});

/** If the host's clock differs from S3's by more than this, its times are corrected; a smaller difference is the delay of the upload. */
const CLOCK_TOLERANCE_MS = 5000;

/** Converts times to S3's clock. `at` is when the driver wrote them by its own clock, epoch seconds. */
function byClockOfS3(starts: StartTimes[], at: number | undefined, writtenAt: EpochMs): StartTimes[] {
  const behind = at === undefined ? 0 : writtenAt - at * 1000;
  if (Math.abs(behind) <= CLOCK_TOLERANCE_MS) return starts;
  const shifted = (time: EpochMs | null) => (time === null ? null : time + behind);
  return starts.map((s) => ({
    ...s,
    firstStepAt: shifted(s.firstStepAt),
    stepAt: shifted(s.stepAt),
    endedAt: shifted(s.endedAt),
  }));
}

/** Result of reading the heartbeat: the heartbeat, empty when there is none, or why it could not be read and, if it is known, when it was written. */
export type HeartbeatReading = Pick<Observed, 'heartbeat' | 'heartbeatError' | 'unreadHeartbeatAt'>;

/** The newest heartbeat of a run. An error provides no information about the job and is therefore distinguished from a missing heartbeat. */
export async function readHeartbeat(s3: S3Client, uri: string): Promise<HeartbeatReading> {
  try {
    const { text: json, writtenAt } = await readObject(s3, uri, MAX_BYTES);
    return readingOf(parseJson(json), writtenAt.getTime());
  } catch (error) {
    if (isNamed(error, 'NoSuchKey', 'NotFound')) return {};
    if (isNamed(error, 'AccessDenied', 'Forbidden') && (await isNotListed(s3, uri))) return {};
    const writtenAt = error instanceof TooLarge ? { unreadHeartbeatAt: error.writtenAt.getTime() } : {};
    return { heartbeatError: describeError(error), ...writtenAt };
  }
}

/**
 * Whether a list of the bucket shows that an object does not exist. S3 answers a read of it with 403 to a caller that may not list the whole
 * bucket, and its documentation does not say whether a permission for some prefixes is enough (assumption `missing-object-answer`).
 */
async function isNotListed(s3: S3Client, uri: string): Promise<boolean> {
  const { Bucket, Key } = bucketAndKey(uri);
  try {
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: Key, MaxKeys: 1 }));
    return Contents[0]?.Key !== Key;
  } catch {
    return false;
  }
}

/** Converts the parsed JSON of a heartbeat that was written at `writtenAt`. */
export function readingOf(facts: unknown, writtenAt: EpochMs): HeartbeatReading {
  const parsed = heartbeatSchema.safeParse(facts);
  if (!parsed.success) return { heartbeatError: 'it is not the heartbeat of a driver', unreadHeartbeatAt: writtenAt };
  // A driver that does not time its steps reports no starts.
  const { attempt, step, phase, at, uptimeSeconds, starts, ...vitals } = parsed.data;
  const timed = starts && { starts: byClockOfS3(starts, at, writtenAt) };
  const began = uptimeSeconds !== undefined && { beganAt: writtenAt - uptimeSeconds * 1000 };
  return { heartbeat: { attempt, step, phase, writtenAt, vitals, ...began, ...timed } };
}
