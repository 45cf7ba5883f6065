import type { RunRecord } from '../../../core/lifecycle/record';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';

/** Logs an error of one run so that it does not affect other runs: the next pass tries again. */
export async function isolateFailure<T>(
  deps: ReconcileDeps,
  run: RunRecord,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    deps.log('error', 'a run was passed over by the queue', { runId: run.runId, error: describeError(error) });
    return undefined;
  }
}
