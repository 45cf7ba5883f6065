import type { Descriptor } from '../../../core/config/descriptor';
import type { Printed } from '../../../core/contracts/answers';
import { attemptNumber, type LogAnswer, type LogEventAnswer, type StatusAnswer } from '../../../core/contracts/control';
import type { LogLine } from '../../../report/read/log-lines';
import { UsageError } from '../../exit';
import { callControl } from '../control-client';

export type RunLine = Printed<'logLine'>;

/** Hosts send their lines in batches, so that a line may arrive after newer ones of another host. */
const LATE_MS = 60_000;

/** The log of a run, read in parts: each line once, and no more of the log than what may be new. */
export class LogTail {
  /** Time of each line that may be read once more, by its id. */
  readonly #seen = new Map<string, number>();
  /** Attempts whose last lines have arrived. */
  readonly #closed = new Set<number>();
  #since: number | undefined;

  constructor(
    private readonly descriptor: Descriptor,
    private readonly query: Omit<AttemptLogQuery, 'attempt' | 'progressOnly'>,
  ) {
    this.#since = query.since;
  }

  /** Lines that were not read before, in chronological order. */
  async fresh({ attempts }: Pick<StatusAnswer, 'attempts'>, now = Date.now()): Promise<RunLine[]> {
    const open = attempts
      .map((attempt, place) => ({ attempt: attemptNumber(attempt, place), endedAt: attempt.endedAt }))
      .filter(({ attempt }) => !this.#closed.has(attempt));
    const { runId, node } = this.query;
    const perAttempt = open.map(async ({ attempt }) => {
      const events = await readAttemptLog(this.descriptor, { runId, attempt, since: this.#since, node });
      return events.filter(({ id }) => !this.#seen.has(id)).map((event) => ({ event, attempt }));
    });
    const found = (await Promise.all(perAttempt)).flat();
    this.#remember(found.map(({ event }) => event));
    for (const { attempt, endedAt } of open) {
      if (endedAt !== null && Date.parse(endedAt) + 2 * LATE_MS < now) this.#closed.add(attempt);
    }
    const lines = found.map(({ event: { at, host, message }, attempt }) => ({ at, attempt, host, message }));
    return lines.sort((a, b) => a.at.localeCompare(b.at));
  }

  #remember(events: readonly LogEventAnswer[]): void {
    for (const { id, at } of events) this.#seen.set(id, Date.parse(at));
    const newest = events.reduce((latest, { at }) => Math.max(latest, Date.parse(at)), this.#since ?? 0);
    if (newest > 0) this.#since = Math.max(this.#since ?? 0, newest - LATE_MS);
    for (const [id, at] of this.#seen) if (at < (this.#since ?? 0)) this.#seen.delete(id);
  }
}

/** Lines that contain an error itself, not its consequences. */
const ERROR_LINE = /\b(Traceback|\w*Error\b|\w*Exception\b|error:|FATAL|CUDA out of memory|Segmentation fault)/;
const BEFORE = 5;
const AFTER = 15;

/** The first error of all hosts, with the lines around it of the same host and attempt; empty when no line looks like one. */
export function firstError(lines: readonly RunLine[]): RunLine[] {
  const found = lines.find(({ message }) => ERROR_LINE.test(message) && !message.startsWith('slipway {'));
  if (!found) return [];
  const ofHost = lines.filter(({ host, attempt }) => host === found.host && attempt === found.attempt);
  const at = ofHost.indexOf(found);
  return ofHost.slice(Math.max(0, at - BEFORE), at + AFTER + 1);
}

interface AttemptLogQuery {
  runId: string;
  /** Number of the attempt, counted from 1. */
  attempt: number;
  /** Epoch milliseconds; older lines are left out. @default - from the first line on */
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
  const perAttempt = attempts.map(attemptNumber).map(async (attempt) => {
    const events = await readAttemptLog(descriptor, { runId, attempt, progressOnly: true });
    return events.map(({ at, message }) => ({ at, attempt, message }));
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
