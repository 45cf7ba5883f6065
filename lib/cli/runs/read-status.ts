import type { Descriptor } from '../../core/config/descriptor';
import type { ListRequest, StatusAnswer } from '../../core/contracts/control';
import type { Read } from '../../report/read/assemble';
import { Refusal, ServiceError } from '../exit';
import { callControl } from './control-client';

/** Control's answer to `status` when it is not a refusal. */
export type Status = { ok: true } & StatusAnswer;

/**
 * The status of a run.
 * @param wanted parts that the answer otherwise omits
 */
export const readStatus = (
  descriptor: Descriptor,
  runId: string,
  wanted: { timeline?: true; configuration?: true } = {},
): Promise<Status> => callControl<Status>(descriptor, { action: 'status', runId, ...wanted });

/** The part of an answer that `--json` prints. */
export function withoutOk<T extends { ok: true }>({ ok: _ok, ...rest }: T): Omit<T, 'ok'> {
  return rest;
}

/** Reads a source that may fail on its own. Only expected errors of a call are caught, so that programming errors still surface. */
export async function attempt<T>(read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    if (error instanceof ServiceError) return { why: error.message };
    if (error instanceof Refusal) return { why: error.issues.map(({ message }) => message).join('; ') };
    throw error;
  }
}

/** Maximum number of runs that the control function lists at once. */
export const MAX_RUNS = 200;

/**
 * The runs of a team, newest first, each with only its newest attempt.
 * @param wanted how many, and which. @default - the default of the control function
 */
export async function readRuns(
  descriptor: Descriptor,
  wanted: Partial<Omit<ListRequest, 'action'>> = {},
): Promise<StatusAnswer[]> {
  const { runs } = await callControl<{ ok: true; runs: StatusAnswer[] }>(descriptor, { action: 'list', ...wanted });
  return runs;
}
