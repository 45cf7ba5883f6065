import { plainLines } from '../../core/config/formats/plain-text';
import {
  type DeleteAnswer,
  type DesiredAnswer,
  hasEnded,
  type NoteAnswer,
  type ReleaseAnswer,
} from '../../core/contracts/control';
import { MAX_NOTE } from '../../core/contracts/control-requests';
import { type RunPlace, runCommand } from '../../core/contracts/names';
import { bytes as sizeOf, usd } from '../../report/page/format';
import { ask } from '../ask';
import { findDescriptor } from '../environment/environment';
import { EXIT, requireText, ServiceError, UsageError } from '../exit';
import type { CommonOptions } from '../inputs';
import { json, type Terminal } from '../terminal';
import { callControl, withoutOk } from './control-client';

/** `slipway delete RUN`: shows what the run left in S3 and what that costs, asks, and has it deleted. Can be interrupted and repeated. */
export async function deleteFiles(
  runId: string,
  options: CommonOptions & { yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  const descriptor = await findDescriptor(options);
  const call = (confirm: boolean) => callControl<DeleteAnswer>(descriptor, { action: 'delete', runId, confirm });
  const found = await call(false);
  for (const line of whatIsLeft(plainLines(found))) terminal.err(line);
  if (!options.yes) await ask('Delete these files?', 'delete');
  let deleted = 0;
  for (let left = objectsOf(found); left > 0; ) {
    const answer = await call(true);
    deleted += answer.deleted;
    left = objectsOf(answer);
    if (left > 0 && answer.deleted === 0)
      throw new ServiceError(`${runId}: ${left} objects are left, and none was deleted; run it again`);
    if (left > 0) terminal.err(`${runId}: ${deleted} objects deleted, ${left} left`);
  }
  if (options.json) terminal.out(json({ runId, deleted, kept: found.kept }));
  else terminal.err(`${runId}: ${deleted} objects deleted; it stays in slipway list with what it cost`);
  return EXIT.done;
}

const objectsOf = ({ places }: DeleteAnswer): number => places.reduce((sum, { objects }) => sum + objects, 0);

/** What will be deleted, what that costs per month, and what will not be deleted. */
export function whatIsLeft({ runId, places, isWhole, usdPerMonth, kept }: Omit<DeleteAnswer, 'ok'>): string[] {
  const more = isWhole ? '' : 'more than ';
  const cost = usdPerMonth === null ? '' : `, ${more}${usd(usdPerMonth)} per month`;
  const all = places.reduce((sum, { bytes }) => sum + bytes, 0);
  return [
    ...places.map(({ uri, objects, bytes }) => `  ${uri}  ${objects} objects, ${sizeOf(bytes)}`),
    places.length > 0
      ? `${runId} has ${more}${sizeOf(all)} in S3${cost}; the run cannot be resumed once they are deleted`
      : `${runId} has nothing left in S3`,
    ...kept.map((uri) => `  kept: ${uri}, which other runs may use`),
  ];
}

/** `slipway stop RUN`: the run saves a checkpoint and ends; with `--release-pool`, the warm pool that its last job left ends. */
export const stop = (
  runId: string,
  options: CommonOptions & { releasePool?: boolean },
  terminal: Terminal,
): Promise<number> =>
  options.releasePool ? releasePool(runId, options, terminal) : setDesired('stop', runId, options, terminal);

/** `slipway resume RUN`: the run continues from its newest committed checkpoint. */
export async function resume(runId: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  if (options.set?.length) {
    const flags = options.set.map((s) => `--set ${s}`).join(' ');
    throw new UsageError(
      `--set: must not be used with resume, because a run cannot be changed, got ${options.set.join(' ')}; use slipway launch FILE ${flags} --set checkpoints.startFrom=${runId}`,
    );
  }
  return setDesired('resume', runId, options, terminal);
}

async function setDesired(
  action: 'stop' | 'resume',
  runId: string,
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  const descriptor = await findDescriptor(options);
  const answer = await callControl<DesiredAnswer>(descriptor, { action, runId });
  const { desiredState, state } = answer;
  if (options.json) terminal.out(json({ runId, desiredState, ...(state && { state }) }));
  else terminal.err(`${runId}: ${whatFollows(action, answer, descriptor)}`);
  return EXIT.done;
}

/** One sentence about the effect of the request, and the command that shows more. */
export function whatFollows(
  action: 'stop' | 'resume',
  { runId, state, changed = true }: DesiredAnswer,
  place: RunPlace,
): string {
  const follow = `${runCommand('status', runId, place, '--wait')} to follow it`;
  const isOver = hasEnded({ state });
  if (action === 'stop') {
    if (isOver) return `${state === 'failed' ? 'has' : 'is'} ${state} already; nothing to stop`;
    return changed
      ? `will stop after a checkpoint; ${follow}`
      : `was already requested to stop and is ${state}; ${follow}`;
  }
  if (!changed) return `is ${state} and continues; ${follow}`;
  if (isOver) return `was ${state} and is queued for its next attempt; ${follow}`;
  return `will continue with another attempt when the one that is stopping has ended; ${follow}`;
}

/** `slipway status RUN --note TEXT`: replaces the note of a run, by which it can be found. */
export async function note(runId: string, text: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  requireText('--note', text, MAX_NOTE);
  const descriptor = await findDescriptor(options);
  const answer = await callControl<NoteAnswer>(descriptor, { action: 'note', runId, text });
  if (options.json) terminal.out(json({ runId, note: answer.note }));
  else terminal.err(`${runId}: noted; use slipway list --search to find it`);
  return EXIT.done;
}

async function releasePool(runId: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  const descriptor = await findDescriptor(options);
  const answer = withoutOk(await callControl<ReleaseAnswer>(descriptor, { action: 'release', runId }));
  if (options.json) terminal.out(json(answer));
  else terminal.err(`${runId}: ${whatWasReleased(plainLines(answer))}`);
  return EXIT.done;
}

/** One sentence about the warm pool. */
export function whatWasReleased(answer: Omit<ReleaseAnswer, 'ok'>): string {
  const { trainingJobName: job, released, warmPoolStatus, reusedBy, savedUsd } = answer;
  if (released)
    return `the warm pool of ${job} was released${savedUsd === null ? '' : `; it would have cost another $${savedUsd.toFixed(2)}`}`;
  if (reusedBy !== null) return `the warm pool of ${job} was reused by ${reusedBy}; nothing to release`;
  if (warmPoolStatus === 'Terminated') return `the warm pool of ${job} has already ended; nothing to release`;
  return 'has no warm pool; nothing to release';
}
