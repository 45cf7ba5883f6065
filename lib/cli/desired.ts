import type { DesiredAnswer } from '../contracts/control';
import { callControl } from './control-client';
import { EXIT, UsageError } from './exit';
import type { CommonOptions } from './inputs';
import { runTarget } from './run-target';
import { json, type Terminal } from './terminal';

/** `slipway stop RUN`: the run saves a checkpoint and ends. */
export const stop = (runId: string, options: CommonOptions, terminal: Terminal): Promise<number> =>
  setDesired('stop', runId, options, terminal);

/** `slipway resume RUN`: the run continues from its newest committed checkpoint. */
export async function resume(runId: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  if (options.set?.length) {
    const flags = options.set.map((s) => `--set ${s}`).join(' ');
    throw new UsageError(
      `--set: must not be given to resume, a run does not change, got ${options.set.join(' ')}; use slipway launch FILE ${flags} --set checkpoints.startFrom=${runId}`,
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
  const { desiredState } = await callControl<DesiredAnswer>(descriptor, { action, runId });
  if (options.json) terminal.out(json({ runId, desiredState }));
  else
    terminal.err(
      `${runId}: ${desiredState === 'stop' ? 'will stop after a checkpoint' : 'will continue'}; slipway status ${runId} --wait follows it`,
    );
  return EXIT.done;
}
