import { plainLines } from '../../core/config/formats/plain-text';
import type { DeleteAnswer } from '../../core/contracts/control';
import { bytes as sizeOf, usd } from '../../report/page/format';
import { ask } from '../ask';
import { EXIT, ServiceError } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import { json, type Terminal } from '../terminal';
import { callControl } from './control-client';

/** Options of `slipway delete`. */
export interface DeleteOptions extends CommonOptions {
  yes?: boolean;
}

/** `slipway delete RUN`: shows what the run left in S3 and what that costs, asks, and has it deleted. Can be interrupted and repeated. */
export async function deleteFiles(runId: string, options: DeleteOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
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
    `${runId} has ${more}${sizeOf(all)} in S3${cost}; the run cannot be resumed once they are deleted`,
    ...kept.map((uri) => `  kept: ${uri}, which other runs may use`),
  ];
}
