import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { Observed } from '../../lifecycle/observed';
import type { EpochMs, StartTimes } from '../../lifecycle/record';
import { bucketAndKey } from '../../spec/formats/s3-uri';
import { isNamed } from './custom-resource';
import { describeError } from './errors';

const number = z.number().nullable().catch(null);
/** The driver writes epoch seconds. */
const seconds = z
  .number()
  .nullable()
  .catch(null)
  .transform((at) => (at === null ? null : Math.round(at * 1000)));
const start = z.object({
  number: z.int().nonnegative(),
  firstStep: number,
  firstStepAt: seconds,
  step: number,
  stepAt: seconds,
  endedAt: seconds,
});

/** Fields that an older driver omits or that are malformed count as unknown. */
const beatSchema = z.object({
  attempt: z.number(),
  step: number,
  phase: z.string().catch(''),
  at: z.number().optional().catch(undefined),
  starts: z.array(start).optional().catch(undefined),
  firstStep: number,
  loss: number,
  lossAlert: z.string().nullable().catch(null),
  slowHost: z.object({ host: z.string(), what: z.string(), ratio: z.number() }).nullable().catch(null),
  stepsPerHour: number,
  usualStepsPerHour: number,
  restarts: z.int().nonnegative().catch(0),
  handOver: z.boolean().catch(false),
  setAside: z.array(z.object({ host: z.string(), reason: z.string() })).catch([]),
  sparesLeft: z.int().nonnegative().nullable().catch(null),
  gpuUtilizationPercent: z.number().min(0).max(100).optional().catch(undefined),
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

/** Result of reading the heartbeat: the heartbeat, empty when there is none, or why it could not be read. */
export type HeartbeatReading = Pick<Observed, 'heartbeat' | 'heartbeatError'>;

/** The newest heartbeat of a run. An error provides no information about the job and is therefore distinguished from a missing heartbeat. */
export async function readHeartbeat(s3: S3Client, uri: string): Promise<HeartbeatReading> {
  try {
    const { Body, LastModified } = await s3.send(new GetObjectCommand(bucketAndKey(uri)));
    if (!Body || !LastModified) return { heartbeatError: 'the answer has no body or no time' };
    return parseBeat(await Body.transformToString(), LastModified.getTime());
  } catch (error) {
    return unreadBeat(error);
  }
}

/** What a failed read means: there is no heartbeat, or it could not be read and why. */
export const unreadBeat = (error: unknown): HeartbeatReading =>
  isNamed(error, 'NoSuchKey', 'NotFound') ? {} : { heartbeatError: describeError(error) };

/** Parses the text of a heartbeat that was written at `writtenAt`. */
const parseBeat = (text: string, writtenAt: EpochMs): HeartbeatReading => beatReading(safeJson(text), writtenAt);

/** Converts the parsed JSON of a heartbeat that was written at `writtenAt`. */
export function beatReading(facts: unknown, writtenAt: EpochMs): HeartbeatReading {
  const beat = beatSchema.safeParse(facts);
  if (!beat.success) return { heartbeatError: 'it is not the heartbeat of a driver' };
  // A driver that does not time its steps reports no starts.
  const { attempt, step, phase, at, starts, ...vitals } = beat.data;
  const timed = starts && { starts: byClockOfS3(starts, at, writtenAt) };
  return { heartbeat: { attempt, step, phase, writtenAt, vitals, ...timed } };
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
