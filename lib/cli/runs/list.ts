import type { StatusAnswer } from '../../contracts/control';
import { textTable } from '../../spec/text-table';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import { json, type Terminal } from '../terminal';
import { readRuns } from './read-status';

/** `slipway list`. */
export async function list(options: CommonOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
  const runs = await readRuns(descriptor);
  if (options.json) terminal.out(json({ runs }));
  else
    terminal.out(
      runs.length === 0
        ? 'no runs yet'
        : textTable(['run', 'state', 'attempt', 'step', 'committed', 'reason'], runs.map(row)),
    );
  return EXIT.done;
}

const row = (run: StatusAnswer): string[] => [
  run.runId,
  run.queuePosition === null ? run.state : `${run.state} (${run.queuePosition})`,
  String(run.attempt ?? run.attempts.length),
  String(run.step ?? '-'),
  String(run.committedStep ?? '-'),
  run.reason,
];
