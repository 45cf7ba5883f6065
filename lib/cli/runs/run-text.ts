import type { Descriptor } from '../../core/config/descriptor';
import { plainLine } from '../../core/config/formats/plain-text';
import { newestAttempt, type StatusAnswer } from '../../core/contracts/control';
import { runCommand } from '../../core/contracts/names';
import { runbookAddress } from '../../core/lifecycle/timeline';
import type { ReportFailure } from '../../report/run/run-report';
import { attempt, readStatus } from './control-client';
import { firstError, type RunLine, readAttemptLog } from './logs/job-logs';

/** The errors that end an attempt are near its end; its whole log may be gigabytes. */
const LAST_MS = 900_000;

/** What a person needs next about a run that failed; undefined for any other. */
export async function failureOf(descriptor: Descriptor, status: StatusAnswer): Promise<ReportFailure | undefined> {
  if (status.state !== 'failed') return undefined;
  const { runId } = status;
  const { value: full = status } = status.timeline
    ? {}
    : await attempt(() => readStatus(descriptor, runId, { timeline: true }));
  const lines = firstError(await lastLines(descriptor, status));
  return {
    attempt: newestAttempt(status),
    host: lines[0]?.host ?? '',
    lines: lines.map(({ message }) => plainLine(message)),
    runbook: runbookAddress(runbookOf(full), process.env.SLIPWAY_DOCS_URL),
    commands: [runCommand('logs', runId, descriptor, '--errors'), runCommand('resume', runId, descriptor)],
  };
}

/** The same as text: the first error with the lines around it, the runbook and two commands. */
export async function failureText(descriptor: Descriptor, status: StatusAnswer): Promise<string[]> {
  const failure = await failureOf(descriptor, status);
  return failure ? failureLines(failure) : [];
}

/** Lines of text about a failure. */
export function failureLines({ attempt, host, lines, runbook, commands }: ReportFailure): string[] {
  const shown = [
    `  first error${host ? ` on ${host}` : ''}, attempt ${attempt}:`,
    ...lines.map((line) => `    ${line}`),
  ];
  return [
    ...(lines.length > 0 ? shown : []),
    ...[runbook, ...commands].map((next, place) => `  ${place === 0 ? 'next' : '    '}  ${next}`),
  ];
}

/** Lines of all hosts from the end of the newest attempt; none when the log cannot be read now. */
async function lastLines(descriptor: Descriptor, status: StatusAnswer): Promise<RunLine[]> {
  const { runId, attempts } = status;
  const number = newestAttempt(status);
  const { endedAt = null } = attempts.at(-1) ?? {};
  if (endedAt === null) return [];
  const since = Date.parse(endedAt) - LAST_MS;
  const { value: events = [] } = await attempt(() => readAttemptLog(descriptor, { runId, attempt: number, since }));
  const lines = events.map(({ at, host, message }) => ({ at, attempt: number, host, message }));
  return lines.sort((a, b) => a.at.localeCompare(b.at));
}

/** The section that the newest notice of the run names. */
const runbookOf = ({ timeline = [] }: StatusAnswer): string | undefined =>
  timeline.findLast(({ what, evidence }) => what === 'notice' && evidence.runbook)?.evidence.runbook?.toString();

/**
 * `12.5 %, done about 2026-11-23 04:10 UTC (80 % interval 2026-11-23 03:40 to 2026-11-23 05:30)`; '' when nothing is known. For a run
 * that was never interrupted, the text says that the interval is based on how often other runs are interrupted: it is too narrow for a run
 * that is interrupted more often.
 */
export function progressText({ progressPercent, etaAt, etaInterval80, interruptions }: StatusAnswer): string {
  const percent = progressPercent == null ? '' : `${progressPercent} %`;
  if (etaAt == null) return percent;
  const interval = etaInterval80
    ? ` (80 % interval ${minute(etaInterval80[0])} to ${minute(etaInterval80[1])}${interruptions === 0 ? ', assuming the usual interruption rate: it was not interrupted yet' : ''})`
    : '';
  return `${percent}, done about ${minute(etaAt)} UTC${interval}`;
}

/** `2026-11-23 04:10` of an ISO 8601 time. */
export const minute = (iso: string): string => iso.slice(0, 16).replace('T', ' ');

/** Trainers need some minutes to load before their first step. */
const FIRST_STEP_MINUTES = 10;

/** What to add to a run whose output has shown no step for a while; '' for any other run. */
export function missingProgress({ step, attempts }: StatusAnswer, now: number): string {
  const last = attempts.at(-1);
  if (step !== null || last?.secondaryStatus !== 'Training' || last.startedAt === null) return '';
  const minutes = Math.floor((now - Date.parse(last.startedAt)) / 60_000);
  if (minutes < FIRST_STEP_MINUTES) return '';
  return `no step was recognised in the output for ${minutes} min; for the next launch, set progress.format to its trainer or progress.stepRegex, or report steps with slipway_helper (docs/guides/trainers.md)`;
}
