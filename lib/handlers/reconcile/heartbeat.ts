import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { Observed } from '../../lifecycle/observed';
import { isNamed } from '../shared/custom-resource';
import { bucketAndKey } from '../shared/s3-uri';
import { describeError } from './describe';

const number = z.number().nullable().catch(null);
/** What an older driver leaves out, or a broken one garbles, is not known. */
const vitals = z.object({
  firstStep: number,
  loss: number,
  lossAlert: z.string().nullable().catch(null),
  slowHost: z.object({ host: z.string(), what: z.string(), ratio: z.number() }).nullable().catch(null),
  stepsPerHour: number,
  usualStepsPerHour: number,
  restarts: z.int().nonnegative().catch(0),
  setAside: z.array(z.object({ host: z.string(), reason: z.string() })).catch([]),
  sparesLeft: z.int().nonnegative().nullable().catch(null),
});

/** What reading the heartbeat gave: the beat, nothing where there is none, or why it could not be read. */
export type HeartbeatReading = Pick<Observed, 'heartbeat' | 'heartbeatError'>;

/** The newest heartbeat of a run. An error says nothing about the job, so it is told apart from a heartbeat that is not there. */
export async function readHeartbeat(s3: S3Client, uri: string): Promise<HeartbeatReading> {
  try {
    const { Body, LastModified } = await s3.send(new GetObjectCommand(bucketAndKey(uri)));
    if (!Body || !LastModified) return { heartbeatError: 'the answer has no body or no time' };
    return parseBeat(await Body.transformToString(), LastModified.getTime());
  } catch (error) {
    return isNamed(error, 'NoSuchKey', 'NotFound') ? {} : { heartbeatError: describeError(error) };
  }
}

function parseBeat(text: string, writtenAt: number): HeartbeatReading {
  const beat = beatSchema.safeParse(safeJson(text));
  if (!beat.success) return { heartbeatError: 'it is not the heartbeat of a driver' };
  const { attempt, step, phase } = beat.data;
  return { heartbeat: { attempt, step, phase, writtenAt, vitals: vitals.parse(beat.data) } };
}

const beatSchema = z.looseObject({ attempt: z.number(), step: number, phase: z.string().catch('') });

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
