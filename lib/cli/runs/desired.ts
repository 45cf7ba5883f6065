import { type DesiredAnswer, hasEnded } from '../../core/contracts/control';
import { EXIT, UsageError } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import { json, type Terminal } from '../terminal';
import { callControl } from './control-client';

/** `slipway stop RUN`: the run saves a checkpoint and ends. */
export const stop = (runId: string, options: CommonOptions, terminal: Terminal): Promise<number> =>
  setDesired('stop', runId, options, terminal);

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
  const descriptor = await runTarget(options);
  const answer = await callControl<DesiredAnswer>(descriptor, { action, runId });
  const { desiredState, state } = answer;
  if (options.json) terminal.out(json({ runId, desiredState, ...(state && { state }) }));
  else terminal.err(`${runId}: ${whatFollows(action, answer, options)}`);
  return EXIT.done;
}

/** One sentence about the effect of the request, and the command that shows more. */
export function whatFollows(
  action: 'stop' | 'resume',
  { runId, state, changed = true }: DesiredAnswer,
  { environment }: Pick<CommonOptions, 'environment'> = {},
): string {
  const from = environment ? ` --environment ${environment}` : '';
  const follow = `slipway status ${runId}${from} --wait to follow it`;
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
