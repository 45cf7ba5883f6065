import type { StatusAnswer } from '../contracts/control';
import type { Descriptor } from '../spec/descriptor';
import { callControl } from './control-client';

export type Status = { ok: true } & StatusAnswer;

/** What the launcher knows of a run. */
export const readStatus = (descriptor: Descriptor, runId: string): Promise<Status> =>
  callControl<Status>(descriptor, { action: 'status', runId }) as Promise<Status>;

/** The part of the answer that `--json` prints. */
export function withoutOk({ ok: _ok, ...rest }: Status): StatusAnswer {
  return rest;
}
