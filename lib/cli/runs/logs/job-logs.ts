import type { Descriptor } from '../../../core/config/descriptor';
import type { LogAnswer, LogEventAnswer, StatusAnswer } from '../../../core/contracts/control';
import type { LogLine } from '../../../report/read/log-lines';
import { UsageError } from '../../exit';
import { callControl } from '../control-client';

/** Selects the lines of an attempt's log. */
export interface AttemptLogQuery {
  runId: string;
  /** Number of the attempt, counted from 1. */
  attempt: number;
  /** Epoch milliseconds; older lines are left out. */
  since?: number;
  /** One host only: `2` or `algo-2`. */
  node?: string;
  /** Only lines of the driver and the trainer. @default false */
  progressOnly?: boolean;
}

/** Lines of all hosts of one attempt, in the order of the service, read through the team's control function. */
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

/** The progress lines of all attempts of a run. */
export async function progressLines(
  descriptor: Descriptor,
  { runId, attempts }: Pick<StatusAnswer, 'runId' | 'attempts'>,
): Promise<LogLine[]> {
  const perAttempt = attempts.map(async (_, index) => {
    const events = await readAttemptLog(descriptor, { runId, attempt: index + 1, progressOnly: true });
    return events.map(({ at, message }) => ({ at, attempt: index + 1, message }));
  });
  return (await Promise.all(perAttempt)).flat();
}

/**
 * Number of a host, given as a number or as SageMaker names it.
 * @throws UsageError for any other text
 */
export function hostNumber(node: string): number {
  const found = /^(?:algo-)?([1-9]\d{0,3})$/.exec(node)?.[1];
  if (found) return Number(found);
  throw new UsageError(`--node: must be a host, got ${node}; write 2 or algo-2`);
}
