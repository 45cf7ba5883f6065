import { setTimeout as sleep } from 'node:timers/promises';
import { hasEnded, type LogEventAnswer } from '../../../contracts/control';
import { plainLine } from '../../../spec/formats/plain-text';
import { EXIT, UsageError } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { runTarget } from '../../launch/run-target';
import { jsonLine, type Terminal } from '../../terminal';
import { readStatus } from '../read-status';
import { readAttemptLog } from './job-logs';

/** Options of `slipway logs`. */
export interface LogOptions extends CommonOptions {
  follow?: boolean;
  node?: string;
  errors?: boolean;
  since?: string;
}

/** An event of CloudWatch Logs may have 1 MB. */
const MOST_LINE = 1_100_000;

interface Line {
  at: string;
  attempt: number;
  host: string;
  message: string;
}

/** `slipway logs RUN`: shows lines of all attempts and hosts in chronological order. */
export async function logs(runId: string, options: LogOptions, terminal: Terminal): Promise<number> {
  const since = sinceMillis(options.since, Date.now());
  const descriptor = await runTarget(options);
  const seen = new Set<string>();
  for (;;) {
    const status = await readStatus(descriptor, runId);
    const { node } = options;
    const perAttempt = status.attempts.map(async (_, index) => {
      const attempt = index + 1;
      return (await readAttemptLog(descriptor, { runId, attempt, since, node })).map((event) => lineOf(event, attempt));
    });
    const events = (await Promise.all(perAttempt)).flat();
    const fresh = events.filter((e) => !seen.has(e.id)).sort((a, b) => a.line.at.localeCompare(b.line.at));
    for (const { id, line } of pick(fresh, options)) {
      seen.add(id);
      terminal.out(options.json ? jsonLine(line) : plainLine(`${line.at} ${line.host} ${line.message}`, MOST_LINE));
    }
    if (!options.follow || hasEnded(status)) return EXIT.done;
    await sleep(2000);
  }
}

interface Event {
  id: string;
  line: Line;
}

const lineOf = ({ id, at, host, message }: LogEventAnswer, attempt: number): Event => ({
  id,
  line: { at, attempt, host, message },
});

/** Lines that contain an error itself, not its consequences. */
const ERROR_LINE = /\b(Traceback|Error\b|Exception\b|error:|FATAL|CUDA out of memory|Segmentation fault)/;

/** With `--errors`: the first error line over all hosts and the nine lines after it on the same host. */
function pick(events: Event[], options: LogOptions): Event[] {
  if (!options.errors) return events;
  const first = events.findIndex((e) => ERROR_LINE.test(e.line.message) && !e.line.message.startsWith('slipway {'));
  const found = events[first];
  if (!found) return [];
  return events
    .slice(first)
    .filter((e) => e.line.host === found.line.host && e.line.attempt === found.line.attempt)
    .slice(0, 10);
}

/** `--since 30m`, `2h`, `1d` or an ISO time, as epoch milliseconds. */
export function sinceMillis(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const relative = /^(\d+)([smhd])$/.exec(text);
  const unit = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[relative?.[2] ?? ''];
  if (relative && unit) return now - Number(relative[1]) * unit;
  const absolute = Date.parse(text);
  if (Number.isNaN(absolute))
    throw new UsageError(`--since: must be a time or a span such as 30m, 2h or 1d, got ${text}; write one of them`);
  return absolute;
}
