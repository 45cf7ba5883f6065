import { plainLines } from '../../core/config/formats/plain-text';
import type { ReleaseAnswer } from '../../core/contracts/control';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import { json, type Terminal } from '../terminal';
import { callControl } from './control-client';
import { withoutOk } from './read-status';

/** Options of `slipway stop`. */
export interface StopOptions extends CommonOptions {
  releasePool?: boolean;
}

/** `slipway stop RUN --release-pool`: ends the warm pool that the last job of the run left. */
export async function releasePool(runId: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
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
