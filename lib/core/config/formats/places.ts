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
const teamCheckpoints = ({ checkpointBucket, team }: Pick<PlaceOwner, 'checkpointBucket' | 'team'>): string =>
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

/** A repository of a hub, as run files and commands name it. */
export interface HubSource {
  kind: 'model' | 'dataset';
  /** `ORG/NAME`. */
  name: string;
  /** Branch, tag or commit. @default main */
  revision: string;
}

const NAME = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}';
const form = (prefix: string) => new RegExp(`^hf:(${prefix})(${NAME}/${NAME})(?:@([\\w][\\w./-]{0,199}))?$`);
/** `hf:ORG/NAME[@REVISION]`. */
export const HUB_MODEL = form('');
/** `hf:datasets/ORG/NAME[@REVISION]`. */
export const HUB_DATASET = form('datasets/');

/** The parts of a source; undefined for other text. */
export function parseHubSource(text: string): HubSource | undefined {
  const [, datasets, name, revision = 'main'] = HUB_DATASET.exec(text) ?? HUB_MODEL.exec(text) ?? [];
  return name === undefined ? undefined : { kind: datasets ? 'dataset' : 'model', name, revision };
}

/** Folder of a data channel in the container. */
export const channelFolder = (channel: string): string => `/opt/ml/input/data/${channel}`;

/** Whether text names a repository of a hub. */
export const isHubSource = (text: string | undefined): boolean => text?.startsWith('hf:') ?? false;

/** Whether a source names a commit, whose files never change. */
export const isPinned = ({ revision }: Pick<HubSource, 'revision'>): boolean => /^[0-9a-f]{40}$/.test(revision);

/** The text of a source. */
export const hubSourceText = ({ kind, name, revision }: HubSource): string =>
  `hf:${kind === 'dataset' ? 'datasets/' : ''}${name}@${revision}`;

/** Prefix of the files that a team has fetched. `slipway_trainer.fetch` names what is below it. */
export const HUB_ROOT = 's3://{dataBucket}/teams/{team}/hub/';

/** Folder of a fetched commit. */
export const hubFolder = ({ name, revision }: HubSource, root = HUB_ROOT): string => `${root}${name}/${revision}/`;

/** Where a run reads what it names: the folder of a fetched commit; other text stays. */
export function placeOf<T extends string | undefined>(text: T): T | string {
  const source = text === undefined ? undefined : parseHubSource(text);
  return source && isPinned(source) ? hubFolder(source) : text;
}

/** Bucket and key of an object. */
export interface S3Place {
  bucket: string;
  key: string;
}

/** Bucket and key of `s3://bucket/key`. Throws on anything else. */
export function parseS3Uri(uri: string): S3Place {
  const match = /^s3:\/\/([^/]+)\/?(.*)$/.exec(uri);
  if (!match?.[1]) throw new Error(`must be an S3 URI such as s3://bucket/key, got ${uri}`);
  return { bucket: match[1], key: match[2] ?? '' };
}

/** The form that the S3 client accepts. */
export function bucketAndKey(uri: string): { Bucket: string; Key: string } {
  const { bucket, key } = parseS3Uri(uri);
  return { Bucket: bucket, Key: key };
}
