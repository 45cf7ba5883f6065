import type { ListRequest, StatusAnswer } from '../../contracts/control';
import type { Descriptor } from '../../spec/descriptor';
import { callControl } from './control-client';

/** Control's answer to `status` when it is no refusal. */
export type Status = { ok: true } & StatusAnswer;

/** What the launcher knows of a run. @param wanted parts that it leaves out else */
export const readStatus = (
  descriptor: Descriptor,
  runId: string,
  wanted: { timeline?: true; configuration?: true } = {},
): Promise<Status> => callControl<Status>(descriptor, { action: 'status', runId, ...wanted });

/** The part of an answer that `--json` prints. */
export function withoutOk<T extends { ok: true }>({ ok: _ok, ...rest }: T): Omit<T, 'ok'> {
  return rest;
}

/** Most runs that the launcher lists at once. */
export const MOST_RUNS = 200;

/** The runs of a team, newest first, each with its newest attempt alone. @param wanted how many, and which. @default - what the launcher lists */
export async function readRuns(
  descriptor: Descriptor,
  wanted: Partial<Omit<ListRequest, 'action'>> = {},
): Promise<StatusAnswer[]> {
  const { runs } = await callControl<{ ok: true; runs: StatusAnswer[] }>(descriptor, { action: 'list', ...wanted });
  return runs;
}
