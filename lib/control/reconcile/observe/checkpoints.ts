import type { S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import { NAMES_NEWEST, STEP_IN_PATH } from '../../../core/catalog/progress-formats';
import { parseJson } from '../../../core/config/formats/json';
import { MAX_STEP, stepNumber } from '../../../core/config/formats/numbers';
import { matchesGlob } from '../../../core/config/formats/patterns';
import { CHECKPOINT_MARKER } from '../../../core/contracts/storage';
import type { CheckpointObservation } from '../../../core/lifecycle/observed';
import { type Checkpoint, checkpointKey, MAX_ATTEMPT } from '../../../core/lifecycle/record';
import { MAX_TEXT_BYTES, readObject } from '../../../shared/aws/read-object';
import { whileTimeRemains } from '../../shared/deadline';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { type Folder, listFolder } from './folders';

/** `checkpoints.keep` is 3 by default. */
const ENOUGH = 3;
/** More objects than a marker of at most `MAX_TEXT_BYTES` lists, at 40 to a hundred bytes each. */
const MAX_OBJECTS = 250_000;
/** Time of an invocation that remains after the search, to decide about the run, stop its job and write it. */
const RESERVE_MS = 30_000;
/** Number of newest folders without a marker in which a running job may be saving: their objects are listed for the newest write. */
const SAVING = 3;

type Listed = Extract<CheckpointObservation, { kind: 'listed' }>;

/** Number of folders that are listed at the same time. */
export const AT_ONCE = 20;

/** Which checkpoints to look for below a prefix. */
export interface CheckpointSearch {
  /**
   * Glob for the marker of a custom script (`checkpoints.committedMarker`); the checkpoint's other objects are not known and not checked.
   */
  marker?: string;
  /** Keys of checkpoints that could not be read: they are listed, but do not count towards `enough`. @default none */
  bad?: readonly string[];
  /** How many complete checkpoints to find. @default 3, so that another one can be tried when the newest proves unreadable */
  enough?: number;
  /** The only folder to look at. @default - all folders of steps */
  only?: string;
  /** A checkpoint that an earlier pass found complete: if it is still the newest, it is not read again. @default none */
  known?: Checkpoint | null;
}

/**
 * The newest complete checkpoints below a prefix: COMMITTED.json exists, and every object that it lists exists with the listed size. Lists
 * the folders once, then makes one read and one list call for each of the newest until enough are complete, so that the number of calls
 * does not depend on how many checkpoints a run has kept.
 */
export async function listCheckpoints(
  { s3: client, remainingMs }: Pick<ReconcileDeps, 's3' | 'remainingMs'>,
  prefixUri: string,
  search: CheckpointSearch = {},
): Promise<CheckpointObservation> {
  const s3 = whileTimeRemains(client, RESERVE_MS, remainingMs);
  try {
    if (search.marker !== undefined) return await marked(s3, prefixUri, search.marker, search);
    return await committed(s3, prefixUri, search);
  } catch (error) {
    return { kind: 'unreadable', error: describeError(error) };
  }
}

const NO_OBJECTS = { objects: new Map(), newestWriteAt: 0 };

async function committed(
  s3: S3Client,
  prefixUri: string,
  { only, known, bad = [], enough = ENOUGH }: CheckpointSearch,
): Promise<Listed> {
  const top = only === undefined ? await listFolder(s3, prefixUri) : { ...NO_OBJECTS, folders: [only] };
  const uris = byStep(top.folders).map((folder) => `${prefixUri}${folder}`);
  if (known && known.uri === uris[0]) return { kind: 'listed', committed: [known], torn: [] };
  const found = { committed: [] as Checkpoint[], torn: [] as Listed['torn'], newestWriteAt: top.newestWriteAt };
  const committedAt: Record<string, number> = {};
  let incomplete = 0;
  while (found.committed.filter((c) => !bad.includes(checkpointKey(c))).length < enough) {
    const uri = uris.shift();
    if (uri === undefined) break;
    const folder = await listFolder(s3, uri, { deep: true, most: MAX_OBJECTS });
    found.newestWriteAt = Math.max(found.newestWriteAt, folder.newestWriteAt);
    const text = await markerOf(s3, uri, folder);
    const verdict = text === undefined ? undefined : judgeMarker(uri, text, folder.objects);
    if (typeof verdict === 'string') found.torn.push({ uri, why: verdict });
    else if (verdict) {
      found.committed.push({ uri, ...verdict });
      committedAt[uri] = folder.objects.get(CHECKPOINT_MARKER)?.writtenAt ?? 0;
    } else if (++incomplete >= SAVING) await dropIncomplete(s3, uris);
  }
  return { kind: 'listed', ...found, committedAt };
}

/** Drops the next folders that have no marker, up to the first one that has. */
async function dropIncomplete(s3: S3Client, uris: string[]): Promise<void> {
  while (uris.length > 0) {
    const some = uris.splice(0, AT_ONCE);
    const markers = await Promise.all(some.map((uri) => markersIn(s3, uri, '', [CHECKPOINT_MARKER])));
    const first = markers.findIndex((found) => found.length > 0);
    if (first < 0) continue;
    uris.unshift(...some.slice(first));
    return;
  }
}

/** The text of a folder's marker; undefined when there is none. Throws when the folder is too large to see whether it is complete. */
async function markerOf(s3: S3Client, folderUri: string, { objects }: Folder): Promise<string | undefined> {
  const listed = objects.get(CHECKPOINT_MARKER);
  if (objects.size >= MAX_OBJECTS) throw new Error(`${folderUri} has ${MAX_OBJECTS} objects or more`);
  if (!listed) return undefined;
  if (listed.bytes > MAX_TEXT_BYTES)
    throw new Error(`${folderUri}${CHECKPOINT_MARKER} has ${listed.bytes} bytes, more than ${MAX_TEXT_BYTES}`);
  return (await readObject(s3, `${folderUri}${CHECKPOINT_MARKER}`, MAX_TEXT_BYTES)).text;
}

/** Folders `step-<n>/`, newest first. */
export const byStep = (folders: readonly string[]): string[] =>
  folders
    .flatMap((folder) => {
      const step = stepNumber(/^step-(\d+)\/$/.exec(folder)?.[1]);
      return step === undefined ? [] : [{ step, folder }];
    })
    .sort((a, b) => b.step - a.step)
    .map(({ folder }) => folder);

const markerSchema = z.object({
  step: z.int().min(0).max(MAX_STEP),
  attempt: z.int().min(0).max(MAX_ATTEMPT).nullish(),
  objects: z.array(z.object({ key: z.string().max(1024), bytes: z.number() })),
});

/** Step and writing attempt of a complete checkpoint, or why it is incomplete. */
function judgeMarker(
  uri: string,
  text: string,
  objects: Folder['objects'],
): Pick<Checkpoint, 'step' | 'attempt'> | string {
  const marker = markerSchema.safeParse(parseJson(text)).data;
  if (!marker) return `${CHECKPOINT_MARKER} cannot be read`;
  if (!uri.endsWith(`/step-${marker.step}/`)) return `${CHECKPOINT_MARKER} names step ${marker.step}`;
  const wrong = marker.objects.filter(({ key, bytes }) => objects.get(key)?.bytes !== bytes);
  if (wrong.length === 0) return { step: marker.step, attempt: marker.attempt ?? null };
  const names = wrong.slice(0, 3).map((o) => o.key);
  return `${wrong.length} objects are missing or have another size (${names.join(', ')})`;
}

type Marked = Checkpoint & { writtenAt: number };

/**
 * Checkpoints of a custom script: the folder of each object that matches the glob; the step is a number in its path. Lists only
 * folders that the glob can match, those with the highest steps first, until enough are found.
 */
async function marked(
  s3: S3Client,
  prefixUri: string,
  marker: string,
  { bad = [], enough = ENOUGH }: CheckpointSearch,
): Promise<Listed> {
  const segments = marker.split('/');
  const numbered: { folder: string; step: number; rest: string[] }[] = [];
  let others = [''];
  for (const [depth, segment] of segments.slice(0, -1).entries()) {
    const folders = await matchingFolders(s3, prefixUri, others, segment);
    const rest = segments.slice(depth + 1);
    for (const folder of folders.filter((f) => /\d/.test(f))) {
      const step = stepIn(folder);
      if (step !== undefined) numbered.push({ folder, step, rest });
    }
    others = folders.filter((f) => !/\d/.test(f));
  }
  const last = segments.slice(-1);
  const found: Marked[] = [];
  for (const folder of others) found.push(...(await markersIn(s3, prefixUri, folder, last)));
  numbered.sort((a, b) => b.step - a.step);
  const isUsable = (c: Marked) => c.step >= (numbered[0]?.step ?? 0) && !bad.includes(checkpointKey(c));
  while (numbered.length > 0 && new Set(found.filter(isUsable).map((c) => c.step)).size < enough) {
    const some = numbered.splice(0, ENOUGH);
    const below = await Promise.all(some.map(({ folder, rest }) => markersIn(s3, prefixUri, folder, rest)));
    found.push(...below.flat());
  }
  return listedOf(found);
}

function listedOf(found: Marked[]): Listed {
  found.sort((a, b) => b.step - a.step);
  return {
    kind: 'listed',
    committed: found,
    torn: [],
    newestWriteAt: Math.max(0, ...found.map((f) => f.writtenAt)),
    committedAt: Object.fromEntries(found.map((f) => [f.uri, f.writtenAt])),
  };
}

/** The step in the path of a marker; undefined when the number has too many digits. */
const stepIn = (path: string): number | undefined =>
  stepNumber(STEP_IN_PATH.map((each) => new RegExp(each).exec(path)?.[1]).find(Boolean) ?? '0');

/** Markers below a folder of the prefix that match the segments of a glob. */
export async function markersIn(
  s3: S3Client,
  prefixUri: string,
  folder: string,
  [glob = '', ...rest]: readonly string[],
): Promise<Marked[]> {
  const uri = `${prefixUri}${folder}`;
  if (rest.length > 0) {
    const folders = await matchingFolders(s3, prefixUri, [folder], glob);
    return (await Promise.all(folders.map((below) => markersIn(s3, prefixUri, below, rest)))).flat();
  }
  const { objects } = await listFolder(s3, uri, { startsWith: literal(glob) });
  if (glob === NAMES_NEWEST) return await namedNewest(s3, uri, objects.get(NAMES_NEWEST)?.writtenAt);
  return [...objects].flatMap(([name, { writtenAt }]) => {
    const step = stepIn(`${folder}${name}`);
    return step === undefined || !matchesMarker(glob, name) ? [] : [{ uri, step, attempt: null, writtenAt }];
  });
}

/** The checkpoint that the file `latest` of a folder names, if it has objects. */
async function namedNewest(s3: S3Client, folderUri: string, writtenAt: number | undefined): Promise<Marked[]> {
  if (writtenAt === undefined) return [];
  const name = (await readObject(s3, `${folderUri}${NAMES_NEWEST}`, MAX_TEXT_BYTES)).text.trim();
  const step = stepIn(name);
  if (step === undefined || !/^[\w.=-]{1,255}$/.test(name)) return [];
  const uri = `${folderUri}${name}/`;
  const { objects } = await listFolder(s3, uri, { deep: true, most: 1 });
  return objects.size === 0 ? [] : [{ uri, step, attempt: null, writtenAt }];
}

const literal = (glob: string): string => glob.split('*')[0] ?? '';

/** Folders one level below `parents` whose last name matches the pattern. */
async function matchingFolders(s3: S3Client, prefixUri: string, parents: readonly string[], glob: string) {
  const found: string[] = [];
  for (const parent of parents) {
    const { folders } = await listFolder(s3, `${prefixUri}${parent}`, { startsWith: literal(glob) });
    found.push(...folders.filter((f) => matchesMarker(glob, f.slice(0, -1))).map((f) => `${parent}${f}`));
  }
  return found;
}

/** `*` matches anything within one folder. */
export const matchesMarker = (glob: string, name: string): boolean => matchesGlob(glob, name, { separator: '/' });
