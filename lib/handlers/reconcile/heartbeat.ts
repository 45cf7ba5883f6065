import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { Heartbeat } from '../../lifecycle/observed';
import { bucketAndKey } from '../shared/s3-uri';

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

/** The newest heartbeat of a run; undefined when there is none or it cannot be read: silence is judged by age, not by errors. */
export async function readHeartbeat(s3: S3Client, uri: string): Promise<Heartbeat | undefined> {
  try {
    const { Body, LastModified } = await s3.send(new GetObjectCommand(bucketAndKey(uri)));
    if (!Body || !LastModified) return undefined;
    const beat = JSON.parse(await Body.transformToString()) as Record<string, unknown>;
    if (typeof beat.attempt !== 'number') return undefined;
    return {
      attempt: beat.attempt,
      step: typeof beat.step === 'number' ? beat.step : null,
      phase: typeof beat.phase === 'string' ? beat.phase : '',
      writtenAt: LastModified.getTime(),
      vitals: vitals.parse(beat),
    };
  } catch {
    return undefined;
  }
}
