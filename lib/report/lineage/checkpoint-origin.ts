/** Content of a checkpoint's COMMITTED.json (docs/reference/runtime.md); null = not specified. */
export interface CheckpointOrigin {
  /** Prefix of the checkpoint with a trailing slash. */
  uri: string;
  /** The run that wrote it, independent of the current location. */
  runId: string | null;
  attempt: number | null;
  step: number;
  tokens: number | null;
  savedAt: string | null;
  /** sha256 of the run file including overrides and defaults. */
  configHash: string | null;
  /** sha256 of the code archive; null for built-in code. */
  codeDigest: string | null;
  imageUri: string | null;
  /** sha256 over names, sizes and digests of the token shards that were read; null for other data. */
  dataDigest: string | null;
  /** Seed of the data order, and the index of the next unread sample. */
  seed: number | null;
  nextSample: number | null;
}

type Fields = Record<string, unknown>;

/** Parses a COMMITTED.json; undefined when invalid. Never throws, because custom scripts may write their own. */
export function checkpointOrigin(uri: string, marker: string): CheckpointOrigin | undefined {
  const fields = fieldsOf(marker);
  const step = number(fields?.step);
  if (!fields || step === null) return undefined;
  const data = isFields(fields.data) ? fields.data : {};
  return {
    uri: uri.endsWith('/') ? uri : `${uri}/`,
    runId: text(fields.runId),
    attempt: number(fields.attempt),
    step,
    tokens: number(fields.tokens),
    savedAt: text(fields.savedAt),
    configHash: text(fields.configHash),
    codeDigest: text(fields.codeDigest),
    imageUri: text(fields.imageUri),
    dataDigest: text(data.digest),
    seed: number(data.seed),
    nextSample: number(data.nextSample),
  };
}

function fieldsOf(marker: string): Fields | undefined {
  try {
    const parsed: unknown = JSON.parse(marker);
    return isFields(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
