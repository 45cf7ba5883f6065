import type { GetParameterCommandOutput } from '@aws-sdk/client-ssm';
import { descriptorParameter } from '../../contracts/launcher';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { isRecent, keepDescriptor, keptDescriptor, parseDescriptor } from '../../handlers/shared/descriptors';
import type { Descriptor } from '../../spec/descriptor';
import type { DirectCalls } from './direct-work';
import { REST_MS } from './kept-limits';

/** The call that reads a descriptor. */
export const READ_DESCRIPTOR = 'ssm:GetParameter';

/** Whether the process has read the team's descriptor within the last minute. */
export const hasRecent = (deps: ReconcileDeps, team: string): boolean =>
  isRecent(keptDescriptor(deps, team), deps.now().getTime());

/** A descriptor does not become too old while an invocation goes on: a function that took over would read it again. */
export function staysAsRecent(deps: ReconcileDeps, team: string): boolean {
  const now = deps.now().getTime();
  const kept = keptDescriptor(deps, team);
  return isRecent(kept, now) === isRecent(kept, now + REST_MS);
}

/**
 * Reads the descriptor of a team as readDescriptor does, unless the process has it.
 * @param isPlain false = the function takes over. @default - every descriptor is plain
 */
export function readDescriptor(
  calls: DirectCalls<ReconcileDeps>,
  team: string,
  then: () => void,
  isPlain: (descriptor: Descriptor) => boolean = () => true,
): void {
  const { deps } = calls.work;
  if (hasRecent(deps, team)) {
    then();
    return;
  }
  const at = deps.now().getTime();
  const keep = (answer: object) => {
    const { value: descriptor } = parseDescriptor((answer as GetParameterCommandOutput).Parameter?.Value ?? '');
    if (!descriptor || !isPlain(descriptor)) return false;
    keepDescriptor(deps, team, { descriptor, at });
    return true;
  };
  const input = { Name: descriptorParameter(deps.environment, team) };
  calls.keptCall({ name: READ_DESCRIPTOR, input, keep, next: then });
}
