import type { S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { CheckpointObservation } from '../../../lifecycle/observed';
import { type Checkpoint, checkpointKey } from '../../../lifecycle/record';
import { matchesGlob } from '../../../spec/formats/glob';
import { MAX_STEP, stepNumber } from '../../../spec/formats/step-number';
import { describeError } from '../../shared/errors';
import { readObject } from '../../shared/read-object';
import { type Folder, listFolder } from './folders';

/** Name of the object that marks a checkpoint as complete; it is written last. */
export const MARKER = 'COMMITTED.json';
/** `checkpoints.keep` is 3 by default. */
const ENOUGH = 3;

type Listed = Extract<CheckpointObservation, { kind: 'listed' }>;

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
  /** A checkpoint that an earlier pass found complete: if it is still the newest, it is not read again. @default none */
  known?: Checkpoint | null;
}

/**
 * The newest complete checkpoints below a prefix: COMMITTED.json exists, and every object that it lists exists with the listed size. Lists
 * the folders once, then makes one read and one list call for each of the newest until enough are complete, so that the number of calls
 * does not depend on how many checkpoints a run has kept.
 */
export async function listCheckpoints(
  s3: S3Client,
  prefixUri: string,
  search: CheckpointSearch = {},
): Promise<CheckpointObservation> {
  try {
    if (search.marker !== undefined) return await marked(s3, prefixUri, search.marker);
    return await committed(s3, prefixUri, search);
  } catch (error) {
    return { kind: 'unreadable', error: describeError(error) };
  }
}

async function committed(s3: S3Client, prefixUri: string, search: CheckpointSearch): Promise<Listed> {
  const found = new CommittedSearch(prefixUri, search, await listFolder(s3, prefixUri));
  for (let uri = found.next(); uri !== undefined; uri = found.next()) {
    const folder = await listFolder(s3, uri, { deep: true });
    found.add(uri, folder, await markerOf(s3, uri, folder));
  }
  return found.listed;
}

/** The text of a folder's marker, empty when it is too large; undefined when there is none. */
async function markerOf(s3: S3Client, folderUri: string, { objects }: Folder): Promise<string | undefined> {
  const listed = objects.get(MARKER);
  if (!listed || listed.bytes > MAX_MARKER_BYTES) return listed && '';
  return (await readObject(s3, `${folderUri}${MARKER}`, MAX_MARKER_BYTES)).text;
}

/** Searches for the newest complete checkpoints, one folder at a time. */
export class CommittedSearch {
  private readonly folders: string[];
  private readonly found: Listed = { kind: 'listed', committed: [], torn: [] };
  private readonly committedAt: Record<string, number> = {};
  private newestWriteAt: number;
  private readonly isKnown: boolean;

  /** @param top one level of the prefix, as listed */
  constructor(
    private readonly prefixUri: string,
    private readonly search: CheckpointSearch,
    top: Folder,
  ) {
    const { known } = search;
    this.folders = byStep(top.folders);
    this.newestWriteAt = top.newestWriteAt;
    const [newest] = this.folders;
    this.isKnown = known != null && newest !== undefined && known.uri === `${prefixUri}${newest}`;
    if (known && this.isKnown) this.found.committed.push(known);
  }

  /** URI of the next folder to list recursively; undefined when enough checkpoints are found. */
  next(): string | undefined {
    const { bad = [], enough = ENOUGH } = this.search;
    if (this.isKnown || this.found.committed.filter((c) => !bad.includes(checkpointKey(c))).length >= enough)
      return undefined;
    const folder = this.folders.shift();
    return folder === undefined ? undefined : `${this.prefixUri}${folder}`;
  }

  /** @param text of the folder's marker; undefined when it has none */
  add(uri: string, { objects, newestWriteAt }: Folder, text: string | undefined): void {
    this.newestWriteAt = Math.max(this.newestWriteAt, newestWriteAt);
    const own = objects.get(MARKER);
    if (!own || text === undefined) return;
    const verdict = judgeMarker(uri, text, objects);
    if (typeof verdict === 'string') this.found.torn.push({ uri, why: verdict });
    else {
      this.found.committed.push({ uri, ...verdict });
      this.committedAt[uri] = own.writtenAt;
    }
  }

  get listed(): Listed {
    const { newestWriteAt, committedAt } = this;
    return this.isKnown ? this.found : { ...this.found, newestWriteAt, committedAt };
  }
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

/** A marker lists every object of its checkpoint, about a hundred bytes each. */
const MAX_MARKER_BYTES = 8 * 1024 * 1024;

const markerSchema = z.object({
  step: z.int().min(0).max(MAX_STEP),
  attempt: z.int().min(0).max(9999).nullish(),
  objects: z.array(z.object({ key: z.string().max(1024), bytes: z.number() })),
});

/** Step and writing attempt of a complete checkpoint, or why it is incomplete. */
function judgeMarker(
  uri: string,
  text: string,
  objects: Folder['objects'],
): Pick<Checkpoint, 'step' | 'attempt'> | string {
  const marker = parseMarker(text);
  if (!marker) return `${MARKER} cannot be read`;
  if (!uri.endsWith(`/step-${marker.step}/`)) return `${MARKER} names step ${marker.step}`;
  const wrong = marker.objects.filter(({ key, bytes }) => objects.get(key)?.bytes !== bytes);
  if (wrong.length === 0) return { step: marker.step, attempt: marker.attempt ?? null };
  const names = wrong.slice(0, 3).map((o) => o.key);
  return `${wrong.length} objects are missing or have another size (${names.join(', ')})`;
}

function parseMarker(text: string): z.infer<typeof markerSchema> | undefined {
  try {
    return markerSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/**
 * Checkpoints of a custom script: the folder of each object that matches the glob; the step is the first number in its path. Lists only
 * folders that the glob can match.
 */
async function marked(s3: S3Client, prefixUri: string, marker: string): Promise<Listed> {
  const segments = marker.split('/');
  const last = segments.pop() ?? '';
  let folders = [''];
  for (const segment of segments) folders = await matchingFolders(s3, prefixUri, folders, segment);
  const found: (Checkpoint & { at: number })[] = [];
  for (const folder of folders) {
    const { objects } = await listFolder(s3, `${prefixUri}${folder}`);
    for (const [name, { writtenAt }] of objects) {
      const step = stepNumber(/\d+/.exec(`${folder}${name}`)?.[0] ?? '0');
      if (step === undefined || !matchesMarker(last, name)) continue;
      found.push({ uri: `${prefixUri}${folder}`, step, attempt: null, at: writtenAt });
    }
  }
  found.sort((a, b) => b.step - a.step);
  return {
    kind: 'listed',
    committed: found.map(({ at: _, ...checkpoint }) => checkpoint),
    torn: [],
    newestWriteAt: Math.max(0, ...found.map((f) => f.at)),
    committedAt: Object.fromEntries(found.map((f) => [f.uri, f.at])),
  };
}

/** Folders one level below `parents` whose last name matches the pattern. */
async function matchingFolders(s3: S3Client, prefixUri: string, parents: readonly string[], glob: string) {
  const found: string[] = [];
  for (const parent of parents) {
    const { folders } = await listFolder(s3, `${prefixUri}${parent}`);
    found.push(...folders.filter((f) => matchesMarker(glob, f.slice(0, -1))).map((f) => `${parent}${f}`));
  }
  return found;
}

/** `*` matches anything within one folder. */
export const matchesMarker = (glob: string, name: string): boolean => matchesGlob(glob, name, { separator: '/' });
