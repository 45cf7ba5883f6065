import type { CheckpointOrigin } from '../lineage/lineage';
import type { ReportCheckpoint, ReportEvent } from '../run/run-report';
import type { SaveLine } from './log-lines';

/** One COMMITTED.json in the bucket, and whether all objects that it lists exist. */
export interface ListedCheckpoint {
  step: number;
  attempt: number | null;
  uri: string;
  savedAt: string | null;
  objects: number;
  sizeBytes: number;
  worldSize: number | null;
  isComplete: boolean;
  /** The origin from its COMMITTED.json. @default - not read */
  origin?: CheckpointOrigin;
}

/** The complete checkpoint with the largest step; undefined when there is none. */
export const newestComplete = (listed: readonly ListedCheckpoint[]): ListedCheckpoint | undefined =>
  listed.filter(({ isComplete }) => isComplete).sort((a, b) => b.step - a.step)[0];

export interface CheckpointSources {
  saves: readonly SaveLine[];
  timeline: readonly ReportEvent[];
  /** undefined = the bucket was not listed. */
  listed?: readonly ListedCheckpoint[];
}

/**
 * The committed checkpoints of a run by step, from three sources: the trainer's lines, the launcher's timeline, and the bucket. A later
 * save of the same step replaces an earlier one; the bucket takes precedence.
 */
export function checkpointList({ saves, timeline, listed }: CheckpointSources): ReportCheckpoint[] {
  const found = new Map<number, ReportCheckpoint>();
  const removed = listed === undefined ? null : ('removed' as const);
  for (const { at, ...save } of [...saves].sort((a, b) => a.at.localeCompare(b.at)))
    found.set(save.step, { ...blank(save.step, removed), ...save, savedAt: at });
  for (const commit of commitsOf(timeline))
    if (isNews(found.get(commit.step), commit)) found.set(commit.step, { ...blank(commit.step, removed), ...commit });
  for (const { isComplete, origin: _, ...there } of listed ?? []) {
    const before = found.get(there.step);
    const same = before?.attempt === there.attempt ? before : undefined;
    found.set(there.step, {
      ...(same ?? blank(there.step, removed)),
      ...there,
      savedAt: same?.savedAt ?? there.savedAt,
      inBucket: isComplete ? 'complete' : 'incomplete',
    });
  }
  return [...found.values()].sort((a, b) => a.step - b.step);
}

const blank = (step: number, inBucket: ReportCheckpoint['inBucket']): ReportCheckpoint => ({
  step,
  attempt: null,
  savedAt: null,
  uri: null,
  inBucket,
  objects: null,
  sizeBytes: null,
  worldSize: null,
  blockedSeconds: null,
  totalSeconds: null,
});

type Commit = Pick<ReportCheckpoint, 'step' | 'attempt' | 'uri' | 'savedAt'>;

/** `checkpoint-committed` lines; their time is when the launcher observed the checkpoint. */
function commitsOf(timeline: readonly ReportEvent[]): Commit[] {
  return timeline.flatMap(({ at, what, evidence }) => {
    if (what !== 'checkpoint-committed' || typeof evidence.step !== 'number') return [];
    const attempt = typeof evidence.attempt === 'number' ? evidence.attempt : null;
    const uri = typeof evidence.uri === 'string' ? evidence.uri : null;
    return [{ step: evidence.step, attempt, uri, savedAt: at }];
  });
}

/** Whether a commit is newer than the trainer's line, which is more precise for the same save. */
const isNews = (before: ReportCheckpoint | undefined, commit: Commit): boolean =>
  before === undefined || (commit.attempt !== null && (before.attempt ?? 0) < commit.attempt);
