import { fillPlaceholders, mayUsePlace, withSlash } from '../../../core/config/formats/places';
import type { Observed } from '../../../core/lifecycle/observed';
import type { Checkpoint } from '../../../core/lifecycle/record';
import { UnreadableItem } from '../../shared/stored';
import type { ReconcileDeps } from '../deps';
import { listCheckpoints } from './checkpoints';
import { checkpointPrefix, type LocatedRun } from './subject';

/** Resolves `checkpoints.startFrom`: another run of the team, one checkpoint, or a prefix with several. */
export async function findStart(deps: ReconcileDeps, whole: LocatedRun): Promise<Observed['startFrom']> {
  const { startFrom } = whole.intent.spec.checkpoints;
  if (startFrom === undefined) return undefined;
  const prefix = startFrom.startsWith('s3://')
    ? ownPrefix(whole, startFrom)
    : await prefixOfRun(deps, whole, startFrom);
  if (prefix instanceof UnreadableItem) return { unreadable: prefix.message };
  if (!prefix)
    return { missing: `${startFrom} is no run or prefix of team ${whole.record.team} with checkpoints in S3` };
  const folder = /^(.*\/)(step-\d+\/)$/.exec(prefix);
  const listed = await listCheckpoints(deps, folder?.[1] ?? prefix, { only: folder?.[2] });
  if (listed.kind === 'unreadable') return { unreadable: `${startFrom} cannot be listed: ${listed.error}` };
  if (listed.kind !== 'listed') return { unreadable: `${startFrom} was not listed` };
  const [found] = listed.committed;
  return found ? asStart(found) : { missing: `${startFrom} has no complete checkpoint` };
}

/** A run that starts from another run's checkpoint continues its step count, but has committed nothing itself. */
const asStart = (checkpoint: Checkpoint): Checkpoint => ({ ...checkpoint, attempt: null });

function ownPrefix({ record, descriptor }: LocatedRun, uri: string): string | undefined {
  const prefix = withSlash(fillPlaceholders(uri, { descriptor, runId: record.runId }));
  return mayUsePlace('checkpoints', prefix, descriptor) ? prefix : undefined;
}

async function prefixOfRun(
  deps: ReconcileDeps,
  whole: LocatedRun,
  runId: string,
): Promise<string | UnreadableItem | undefined> {
  const other = await deps.store.findOther(runId);
  if (other instanceof UnreadableItem) return other;
  const intent = await deps.store.findIntent(runId);
  if (!other || !intent || other.team !== whole.record.team) return undefined;
  return checkpointPrefix({ record: other, intent, descriptor: whole.descriptor });
}
