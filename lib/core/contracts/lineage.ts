import { z } from 'zod';
import { field } from '../config/formats/field';

/** An S3 URI has up to 1,100 characters, and a note quotes one. */
const text = z.string().max(4096);
const number = z.number();
const whole = z.int();
const orNull = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);
const time = field(text, 'ISO 8601, UTC');

const checkpointOrigin = z.object({
  uri: text,
  runId: field(orNull(text), 'the run that wrote it'),
  attempt: orNull(whole),
  step: whole,
  tokens: orNull(number),
  savedAt: orNull(time),
  configHash: field(orNull(text), 'sha256 of the run file including overrides and defaults'),
  codeDigest: orNull(text),
  imageUri: orNull(text),
  dataDigest: field(orNull(text), 'digest over names, sizes and digests of the token shards'),
  seed: orNull(whole),
  nextSample: orNull(whole),
});

/** The complete origin of a run: printed by `slipway status --lineage --json`. */
export const lineageSchema = z.object({
  of: field(text, 'the requested run or checkpoint'),
  checkpoint: field(orNull(checkpointOrigin), 'the requested checkpoint, or the newest committed one'),
  runs: field(
    z
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
            channels: z.array(z.object({ channel: text, source: text })).max(100),
            digest: orNull(text),
          }),
          parents: z
            .array(
              z.object({
                kind: z.enum(['checkpoint', 'weights']),
                source: field(text, 'S3 URI or run id'),
                runId: orNull(text),
                step: orNull(whole),
                by: field(text, 'attempt or option that started from it'),
              }),
            )
            .max(1000),
          claims: field(
            z.array(text).max(4).optional(),
            'what its checkpoint, which the code of the run writes, says otherwise than the launcher, and the URI of an image that AWS publishes',
          ),
        }),
      )
      .max(1000),
    'the run itself, followed by the runs that it started from',
  ),
  notes: field(z.array(text).max(1000), 'origins that could not be determined, with the reason'),
});
