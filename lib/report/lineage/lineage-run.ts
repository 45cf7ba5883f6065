import { stepNumber } from '../../core/config/formats/step-number';
import type { LaunchedWith } from '../compare/diff-runs';
import type { CheckpointOrigin } from './checkpoint-origin';
import type { LineageChannel, LineageParent, LineageRun } from './lineage';

/** The fields of a timeline line that lineage uses. */
interface Intended {
  what: string;
  evidence: Record<string, unknown>;
}

/** Inputs for the lineage of one run. */
export interface LineageSources {
  status: {
    runId: string;
    name: string;
    team: string;
    state: string;
    timeline?: readonly Intended[];
  };
  /** Not set by older launchers. */
  configuration?: LaunchedWith;
  /** Newest committed checkpoint of the run, or the requested one. */
  checkpoint?: CheckpointOrigin;
  /** Replaces the placeholders in URIs of this run (`{dataBucket}`). */
  fill(text: string): string;
}

/** The origin of a run, from its configuration, timeline and checkpoint. */
export function lineageRun({ status, configuration, checkpoint, fill }: LineageSources): LineageRun {
  const { runId, name, team, state, timeline = [] } = status;
  const spec = configuration?.spec ?? {};
  return {
    runId,
    name,
    team,
    state,
    configHash: checkpoint?.configHash ?? null,
    code: {
      source: textAt(spec, 'code', 'source'),
      sha256: configuration?.codeSha256 ?? checkpoint?.codeDigest ?? null,
    },
    driverHash: configuration?.driverHash ?? null,
    image: checkpoint?.imageUri ?? imageOf(spec, configuration),
    data: { channels: channelsOf(spec.data, fill), digest: checkpoint?.dataDigest ?? null },
    parents: parentsOf(spec, fill, resumes(timeline, checkpoint)),
  };
}

/** Run id from a URI under the runs prefix: `s3://bucket/runs/<team>/<runId>/...`. */
const runOf = (address: string): string | null =>
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
    .flatMap(({ evidence }, i) => {
      const from = evidence.resumeFrom as { uri?: unknown; step?: unknown } | null | undefined;
      if (i + 1 > last || typeof from?.uri !== 'string') return [];
      const found = parent('checkpoint', from.uri, `attempt ${i + 1}`);
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

function channelsOf(data: unknown, fill: LineageSources['fill']): LineageChannel[] {
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
