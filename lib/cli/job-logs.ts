import type { LogAnswer, LogEventAnswer } from '../contracts/control';
import type { Descriptor } from '../spec/descriptor';
import { callControl } from './control-client';
import { UsageError } from './exit';

export interface AttemptLogQuery {
  runId: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Epoch milliseconds; older lines are left out. */
  since?: number;
  /** One host only: `2` or `algo-2`. */
  node?: string;
  /** Only lines of the driver and the trainer. @default false */
  progressOnly?: boolean;
}

/** Lines of all hosts of one attempt, as the service orders them, read through the team's launcher. */
export async function readAttemptLog(descriptor: Descriptor, query: AttemptLogQuery): Promise<LogEventAnswer[]> {
  const { node, ...rest } = query;
  const host = node === undefined ? undefined : hostNumber(node);
  const events: LogEventAnswer[] = [];
  let nextToken: string | undefined;
  do {
    const page = (await callControl<LogAnswer>(descriptor, { action: 'logs', ...rest, host, nextToken })) as LogAnswer;
    events.push(...page.events);
    nextToken = page.nextToken;
  } while (nextToken);
  return events;
}

function hostNumber(node: string): number {
  const found = /^(?:algo-)?([1-9]\d{0,3})$/.exec(node)?.[1];
  if (found) return Number(found);
  throw new UsageError(`--node: must be the number of a host, got ${node}; write 2 or algo-2`);
}
