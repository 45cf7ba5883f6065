import type { FaultTarget } from '../faults/fault';
import type { FaultPlan } from '../faults/fault-plan';
import { internalError } from './job-failure';
import type { RunControl } from './run-control';

/**
 * Stays in a state for its usual time, or longer because of a planned fault.
 * @throws JobFailure InternalServerError because of a planned fault in this state
 */
export async function holdState(
  state: 'Starting' | 'Downloading' | 'Uploading',
  seconds: number,
  { faults, control, target }: { faults: FaultPlan; control: RunControl; target: FaultTarget },
): Promise<void> {
  const delay = faults.strike('state-delay', { ...target, state });
  await control.sleep(seconds + (delay?.seconds ?? 0));
  if (delay?.seconds === null) await control.race(faults.untilRemoved(delay));
  if (faults.strike('internal-error', { ...target, state })) throw internalError();
}
