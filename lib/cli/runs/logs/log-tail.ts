import type { Descriptor } from '../../../core/config/descriptor';
import type { LogEventAnswer, StatusAnswer } from '../../../core/contracts/control';
import { readAttemptLog } from './job-logs';

/** One line of a run's log. */
export interface RunLine {
  at: string;
  attempt: number;
  host: string;
  message: string;
}

/** What a tail reads. */
export interface TailQuery {
  runId: string;
  /** One host only: `2` or `algo-2`. */
  node?: string;
  /** Epoch milliseconds. @default - from the first line on */
  since?: number;
}

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
    private readonly query: TailQuery,
  ) {
    this.#since = query.since;
  }

  /** Lines that were not read before, in chronological order. */
  async fresh({ attempts }: Pick<StatusAnswer, 'attempts'>, now = Date.now()): Promise<RunLine[]> {
    const numbers = attempts.map((_, index) => index + 1).filter((attempt) => !this.#closed.has(attempt));
    const { runId, node } = this.query;
    const perAttempt = numbers.map(async (attempt) => {
      const events = await readAttemptLog(this.descriptor, { runId, attempt, since: this.#since, node });
      return events.filter(({ id }) => !this.#seen.has(id)).map((event) => ({ event, attempt }));
    });
    const found = (await Promise.all(perAttempt)).flat();
    this.#remember(found.map(({ event }) => event));
    for (const attempt of numbers) {
      const { endedAt = null } = attempts[attempt - 1] ?? {};
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
