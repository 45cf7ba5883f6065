import type { NoteAnswer } from '../../core/contracts/control';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import { json, type Terminal } from '../terminal';
import { callControl } from './control-client';

/** `slipway status RUN --note TEXT`: replaces the note of a run, by which it can be found. */
export async function note(runId: string, text: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
  const answer = await callControl<NoteAnswer>(descriptor, { action: 'note', runId, text });
  if (options.json) terminal.out(json({ runId, note: answer.note }));
  else terminal.err(`${runId}: noted; use slipway list --search to find it`);
  return EXIT.done;
}
