import type { Descriptor } from '../../../core/config/descriptor';
import { hasEnded, type StatusAnswer } from '../../../core/contracts/control';
import { ServiceError } from '../../exit';
import { callControl } from '../../runs/control-client';
import type { Terminal } from '../../terminal';
import { isLoser, type Sample, type StopRule, sampleOf } from './stop-rule';

/** Observes the runs of a sweep and stops those that the rule selects. */
export interface EarlyStop {
  /** Called with each status of each run. */
  observe(status: StatusAnswer): Promise<void>;
  /** Ids of the runs that it has stopped. */
  stopped: ReadonlySet<string>;
}

/** Requests stops through the control function, like `slipway stop`: each run saves a checkpoint and may be resumed. */
export function earlyStop(rule: StopRule, descriptor: Descriptor, terminal: Terminal): EarlyStop {
  const samples = new Map<string, Sample[]>();
  const stopped = new Set<string>();
  const observe = async (status: StatusAnswer): Promise<void> => {
    const { runId } = status;
    const own = samples.get(runId) ?? [];
    samples.set(runId, own);
    const sample = sampleOf(rule, status);
    // The same heartbeat may be seen several times; after a restart steps are repeated.
    if (sample && sample.step !== own.at(-1)?.step) own.push(sample);
    if (hasEnded(status) || status.desiredState === 'stop' || stopped.has(runId)) return;
    const others = [...samples].flatMap(([id, found]) => (id === runId ? [] : [found]));
    if (!isLoser(rule, own, others)) return;
    if (await stop(descriptor, runId, rule, terminal)) stopped.add(runId);
  };
  return { observe, stopped };
}

/** A call that fails is repeated with the next status. */
async function stop(descriptor: Descriptor, runId: string, { text }: StopRule, terminal: Terminal): Promise<boolean> {
  try {
    await callControl(descriptor, { action: 'stop', runId, reason: `--stop-when ${text}`.slice(0, 512) });
    terminal.err(`${runId}: stopped early: ${text}; run slipway resume ${runId} to continue it`);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return false;
  }
}
