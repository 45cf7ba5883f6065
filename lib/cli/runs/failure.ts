import type { Descriptor } from '../../core/config/descriptor';
import { plainLine } from '../../core/config/formats/plain-text';
import type { StatusAnswer } from '../../core/contracts/control';
import { runbookAddress } from '../../core/lifecycle/runbook-address';
import type { ReportFailure } from '../../report/run/run-report';
import { firstError } from './logs/first-error';
import { readAttemptLog } from './logs/job-logs';
import type { RunLine } from './logs/log-tail';
import { answerOr, readStatus } from './read-status';

/** The errors that end an attempt are near its end; its whole log may be gigabytes. */
const LAST_MS = 900_000;

/** What a person needs next about a run that failed; undefined for any other. */
export async function failureOf(descriptor: Descriptor, status: StatusAnswer): Promise<ReportFailure | undefined> {
  if (status.state !== 'failed') return undefined;
  const { runId } = status;
  const full = status.timeline ? status : await answerOr(readStatus(descriptor, runId, { timeline: true }), status);
  const options = `--environment ${descriptor.name}/${descriptor.team} --region ${descriptor.region}`;
  const lines = firstError(await lastLines(descriptor, status));
  return {
    attempt: status.attempts.length,
    host: lines[0]?.host ?? '',
    lines: lines.map(({ message }) => plainLine(message)),
    runbook: runbookAddress(runbookOf(full), process.env.SLIPWAY_DOCS_URL),
    commands: [`slipway logs ${runId} ${options} --errors`, `slipway resume ${runId} ${options}`],
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
async function lastLines(descriptor: Descriptor, { runId, attempts }: StatusAnswer): Promise<RunLine[]> {
  const attempt = attempts.length;
  const { endedAt = null } = attempts.at(-1) ?? {};
  if (endedAt === null) return [];
  const since = Date.parse(endedAt) - LAST_MS;
  const events = await answerOr(readAttemptLog(descriptor, { runId, attempt, since }), []);
  const lines = events.map(({ at, host, message }) => ({ at, attempt, host, message }));
  return lines.sort((a, b) => a.at.localeCompare(b.at));
}

/** The section that the newest notice of the run names. */
const runbookOf = ({ timeline = [] }: StatusAnswer): string | undefined =>
  timeline.findLast(({ what, evidence }) => what === 'notice' && evidence.runbook)?.evidence.runbook?.toString();
