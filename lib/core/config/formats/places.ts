import type { Descriptor } from '../descriptor';

/** The parts of a descriptor that decide where a team may read and write. */
export type PlaceOwner = Pick<
  Descriptor,
  'team' | 'dataBucket' | 'checkpointBucket' | 'artifactBucket' | 'external' | 'writableData'
>;

/** What a run does at a location in S3. */
export type PlaceUse =
  /** Its job reads data, weights or code. */
  | 'read'
  /** Its job writes checkpoints, and reconcile lists them and tags those that were never committed. */
  | 'checkpoints'
  /** A training job writes its output. */
  | 'output'
  /** A processing job writes its results. */
  | 'results';

/** Replaces `{dataBucket}`, `{checkpointBucket}`, `{team}`, `{fsx}`, `{fsxPath}` and, if it is known, `{runId}`. */
export function fillPlaceholders(
  text: string,
  { descriptor, runId }: { descriptor: PlaceOwner & Pick<Descriptor, 'fileSystems'>; runId?: string },
): string {
  const lustre = Object.values(descriptor.fileSystems ?? {}).find(({ id, fsxLustre }) => id ?? fsxLustre);
  const values: Record<string, string | undefined> = {
    dataBucket: descriptor.dataBucket,
    checkpointBucket: descriptor.checkpointBucket,
    team: descriptor.team,
    runId,
    fsx: lustre?.id ?? lustre?.fsxLustre,
    fsxPath: lustre?.directoryPath?.replace(/\/$/, ''),
  };
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** URI of the prefix below which all runs of a team keep their checkpoints. */
export const teamCheckpoints = ({ checkpointBucket, team }: Pick<PlaceOwner, 'checkpointBucket' | 'team'>): string =>
  `s3://${checkpointBucket}/runs/${team}/`;

/** Prefixes of the data bucket to which processing jobs of the team may write. */
const writableOf = ({ team, writableData }: PlaceOwner): string[] => writableData ?? [`teams/${team}/`];

/**
 * Prefixes that the runs of a team may use: its own, what the environment shares, and what it declares as external. A list that the
 * descriptor lacks is empty.
 */
export function allowedPlaces(use: PlaceUse, owner: PlaceOwner): string[] {
  const { team, dataBucket, artifactBucket, external = [] } = owner;
  const own = teamCheckpoints(owner);
  const writable = external.filter(({ access }) => access === 'read-write').map(({ s3 }) => s3);
  switch (use) {
    case 'checkpoints':
      return [own];
    case 'output':
      return [own, ...writable];
    case 'results':
      return [...writableOf(owner).map((prefix) => `s3://${dataBucket}/${prefix}`), ...writable];
    case 'read':
      return [`s3://${dataBucket}/`, own, `s3://${artifactBucket}/runs/${team}/`, ...external.map(({ s3 }) => s3)];
  }
}

/**
 * Whether a run of the team may use the location in this way. IAM cannot decide this for what reconcile does with its own role, because
 * that role serves all teams.
 * @param uri with its placeholders filled in, except `{runId}` before a run has an id
 */
export function mayUsePlace(use: PlaceUse, uri: string, owner: PlaceOwner): boolean {
  if (uri.split('/').some((segment) => segment === '.' || segment === '..')) return false;
  if (use === 'read' && isDataOfOtherTeam(uri, owner)) return false;
  return allowedPlaces(use, owner).some((prefix) => isWithin(uri, prefix));
}

/** Whether a URI is a prefix itself or lies below it: the name of a folder ends with a slash. */
export function isWithin(uri: string, prefix: string): boolean {
  const folder = withSlash(prefix);
  return uri.startsWith(folder) || withSlash(uri) === folder;
}

/** The same URI as a prefix. */
export const withSlash = (uri: string): string => (uri.endsWith('/') ? uri : `${uri}/`);

/** In the data bucket, `teams/<team>/` belongs to that team, and to others for which the environment declares it. */
function isDataOfOtherTeam(uri: string, owner: PlaceOwner): boolean {
  const bucket = `s3://${owner.dataBucket}/`;
  const own = [`teams/${owner.team}/`, ...writableOf(owner)];
  return uri.startsWith(`${bucket}teams/`) && !own.some((prefix) => isWithin(uri, `${bucket}${prefix}`));
}
