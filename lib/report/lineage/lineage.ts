import { isGroup, parseJson } from '../../core/config/formats/json';
import { stepNumber } from '../../core/config/formats/numbers';
import type { Printed, TimelineAnswer } from '../../core/contracts/answers';
import type { RunConfiguration } from '../../core/contracts/control';
import { type Html, table } from '../page/parts';
import type { RunReport } from '../run/run-report';

/** The complete origin of a run; null = not known or none. */
export type Lineage = Printed<'lineage'>;
export type LineageRun = Lineage['runs'][number];
type LineageParent = LineageRun['parents'][number];
/** Content of a checkpoint's COMMITTED.json (docs/reference/runtime.md); null = not specified. */
export type CheckpointOrigin = NonNullable<Lineage['checkpoint']>;

/** Parses a COMMITTED.json; undefined when invalid. Never throws, because custom scripts may write their own. */
export function checkpointOrigin(uri: string, marker: string): CheckpointOrigin | undefined {
  const fields = parseJson(marker);
  if (!isGroup(fields)) return undefined;
  const step = number(fields.step);
  if (step === null) return undefined;
  const data = isGroup(fields.data) ? fields.data : {};
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

/** A longer text is none of ours: the schema of a lineage has this limit. */
const text = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= 4096 ? value : null;
const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);

/** The fields of a timeline line that lineage uses. */
type Intended = Omit<TimelineAnswer, 'at'>;

interface LineageSources {
  status: Pick<LineageRun, 'runId' | 'name' | 'team' | 'state'> & { timeline?: readonly Intended[] };
  /** Not set by older launchers. */
  configuration?: RunConfiguration;
  /** Newest committed checkpoint of the run, or the requested one. */
  checkpoint?: CheckpointOrigin;
  /** Replaces the placeholders in URIs of this run (`{dataBucket}`). */
  fill(text: string): string;
}

export function lineageRun({ status, configuration, checkpoint, fill }: LineageSources): LineageRun {
  const { runId, name, team, state, timeline = [] } = status;
  const spec = configuration?.spec ?? {};
  const { configHash, codeDigest, imageUri } = checkpoint ?? {};
  const image = imageOf(spec, configuration);
  // The code of the run writes its checkpoint. An image that AWS publishes is known by its version, and there alone by its URI.
  const claims = [
    claim('run', runId, checkpoint?.runId),
    claim('configuration', configuration?.configHash, configHash),
    claim('code', configuration?.codeSha256, codeDigest),
    claim('image', image, imageUri),
  ].flat();
  return {
    runId,
    name,
    team,
    state,
    configHash: configuration?.configHash ?? configHash ?? null,
    code: {
      source: textAt(spec, 'code', 'source'),
      sha256: configuration?.codeSha256 ?? codeDigest ?? null,
    },
    driverHash: configuration?.driverHash ?? null,
    image: image ?? imageUri ?? null,
    data: { channels: channelsOf(spec.data, fill), digest: checkpoint?.dataDigest ?? null },
    parents: parentsOf(spec, fill, resumes(timeline, checkpoint)),
    ...(claims.length > 0 && { claims }),
  };
}

const claim = (what: string, known: string | null | undefined, claimed: string | null | undefined): string[] =>
  known && claimed && claimed !== known ? [`${what} ${claimed}`] : [];

/** Run id from a URI under the runs prefix: `s3://bucket/runs/<team>/<runId>/...`. */
export const runOf = (address: string): string | null =>
  /^s3:\/\/[^/]+\/runs\/[^/]+\/([^/]+)\//.exec(`${address}/`)?.[1] ?? null;

const stepOf = (address: string): number | null => stepNumber(/\/step-(\d+)\/?$/.exec(address)?.[1]) ?? null;

/** The first attempt already contains the checkpoint that `checkpoints.startFrom` resolved to. */
function parentsOf(
  spec: Record<string, unknown>,
  fill: LineageSources['fill'],
  resumed: readonly LineageParent[],
): LineageParent[] {
  const from = textAt(spec, 'checkpoints', 'startFrom');
  const weights = textAt(spec, 'model', 'weights');
  const isNamed = resumed.some(({ by }) => by === 'attempt 1');
  return [
    ...(weights === null ? [] : [parent('weights', fill(weights), 'model.weights')]),
    ...(from === null || isNamed ? [] : [parent('checkpoint', fill(from), 'checkpoints.startFrom')]),
    ...resumed,
  ];
}

const parent = (kind: LineageParent['kind'], source: string, by: string): LineageParent => ({
  kind,
  source,
  runId: source.startsWith('s3://') ? runOf(source) : source,
  step: stepOf(source),
  by,
});

/** The checkpoint that each attempt started from, up to the attempt that wrote the given checkpoint. */
function resumes(timeline: readonly Intended[], checkpoint: CheckpointOrigin | undefined): LineageParent[] {
  const last = checkpoint?.attempt ?? Number.POSITIVE_INFINITY;
  return timeline
    .filter(({ what }) => what === 'attempt-intended')
    .flatMap(({ evidence, text }, i) => {
      const number = Number(/^attempt (\d+)/.exec(text)?.[1] ?? i + 1);
      const from = evidence.resumeFrom as { uri?: unknown; step?: unknown } | null | undefined;
      if (number > last || typeof from?.uri !== 'string') return [];
      const found = parent('checkpoint', from.uri, `attempt ${number}`);
      return [{ ...found, step: typeof from.step === 'number' ? from.step : found.step }];
    });
}

/** For an image published by AWS, its kind and version: the launcher does not record its digest. */
function imageOf(spec: Record<string, unknown>, configuration: LineageSources['configuration']): string | null {
  const uri = textAt(spec, 'image', 'uri');
  const kind = textAt(spec, 'image', 'kind') ?? 'environment';
  if (uri !== null) return uri;
  if (kind === 'environment') return configuration?.trainingImageUri ?? null;
  return [kind, textAt(spec, 'image', 'version')].filter((part) => part !== null).join(' ');
}

function channelsOf(data: unknown, fill: LineageSources['fill']): LineageRun['data']['channels'] {
  if (!Array.isArray(data)) return [];
  return data.flatMap((one: Record<string, unknown> | null) => {
    if (typeof one?.channel !== 'string') return [];
    const source = typeof one.s3 === 'string' ? fill(one.s3) : fileSystemOf(one);
    return [{ channel: one.channel, source }];
  });
}

/** `fsxLustre fs-0123/folder` for a channel on a file system. */
function fileSystemOf(channel: Record<string, unknown>): string {
  const [kind, place] = Object.entries(channel).find(([key]) => key === 'fsxLustre' || key === 'efs') ?? ['', {}];
  const { fileSystemId = '', directoryPath = '' } = place as { fileSystemId?: string; directoryPath?: string };
  return `${kind} ${fileSystemId}${directoryPath}`.trim();
}

function textAt(spec: Record<string, unknown>, section: string, key: string): string | null {
  const value = (spec[section] as Record<string, unknown> | undefined)?.[key];
  return typeof value === 'string' ? value : null;
}

/** Name and value of each item of a run's origin; a dash when not known. */
export function lineageRows({
  configHash,
  code,
  driverHash,
  image,
  data,
  parents,
  claims,
}: LineageRun): [string, string][] {
  return [
    ['configuration', configHash ?? '-'],
    ['code', [code.source, code.sha256].filter((part) => part !== null).join('  ') || '-'],
    ['driver', driverHash ?? '-'],
    ['image', image ?? '-'],
    ...data.channels.map(({ channel, source }): [string, string] => [`data ${channel}`, source]),
    ['data digest', data.digest ?? '-'],
    ...parents.map(({ source, step, by }): [string, string] => ['from', `${source}${stepText(source, step)} (${by})`]),
    ...(claims ? [['its checkpoint says', claims.join(', ')] satisfies [string, string]] : []),
  ];
}

/** The step, unless the URI ends with it. */
const stepText = (source: string, step: number | null): string =>
  step === null || source.replace(/\/$/, '').endsWith(`step-${step}`) ? '' : ` at step ${step}`;

/** The origin of the run; undefined when the launcher does not provide it. */
export const lineagePart = ({ lineage }: RunReport): Html | undefined =>
  lineage &&
  table({
    caption: 'Origin of the run: as the launcher knows it; the digest of its data from its newest complete checkpoint',
    columns: [
      { head: 'Part', kind: 'fixed' },
      { head: 'Value', kind: 'long' },
    ],
    rows: lineageRows(lineage),
  });
