import { z } from 'zod';

const text = z.string();
const number = z.number();
const whole = z.int();
const orNull = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);
const time = text.meta({ description: 'ISO 8601, UTC' });

const checkpointOrigin = z.object({
  uri: text,
  runId: orNull(text).meta({ description: 'the run that wrote it' }),
  attempt: orNull(whole),
  step: whole,
  tokens: orNull(number),
  savedAt: orNull(time),
  configHash: orNull(text).meta({ description: 'sha256 of the run file with overrides and defaults' }),
  codeDigest: orNull(text),
  imageUri: orNull(text),
  dataDigest: orNull(text).meta({ description: 'over names, sizes and digests of the token shards' }),
  seed: orNull(whole),
  nextSample: orNull(whole),
});

/** From a run to everything that it was made from: what `slipway lineage --json` prints, and what a caller sends for a model card. */
export const lineageSchema = z.object({
  of: text.meta({ description: 'what was asked for' }),
  checkpoint: orNull(checkpointOrigin).meta({ description: 'the one asked for, or the newest committed one' }),
  runs: z
    .array(
      z.object({
        runId: text,
        name: text,
        team: text,
        state: text,
        configHash: orNull(text),
        code: z.object({ source: orNull(text), sha256: orNull(text) }),
        driverHash: orNull(text),
        image: orNull(text),
        data: z.object({
          channels: z.array(z.object({ channel: text, source: text })),
          digest: orNull(text),
        }),
        parents: z.array(
          z.object({
            kind: z.enum(['checkpoint', 'weights']),
            source: text.meta({ description: 'S3 address, or run id' }),
            runId: orNull(text),
            step: orNull(whole),
            by: text.meta({ description: 'attempt or option that began from it' }),
          }),
        ),
      }),
    )
    .meta({ description: 'the run first, then the runs that it began from' }),
  notes: z.array(text).meta({ description: 'what could not be followed, and why' }),
});
