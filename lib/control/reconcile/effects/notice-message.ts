import { plainLine } from '../../../core/config/formats/plain-text';
import { dollars } from '../../../core/lifecycle/accounting/spend';
import { isOver, type Notice, type RunRecord, type RunState } from '../../../core/lifecycle/record';
import { runbookAddress } from '../../../core/lifecycle/runbook-address';

/** Of a text that contains words of a job: a message of SNS may have 256 KiB, and an event of EventBridge too. */
export const MAX_TEXT = 2000;

/** Where commands find the run, and where the documentation is. */
export interface NoticePlace {
  region: string;
  /** Address of the documentation site of the company. @default - addresses are paths of the package */
  docsUrl?: string;
}

/** https://docs.aws.amazon.com/sns/latest/api/API_Publish.html, 2026-11-26 */
const MAX_SUBJECT = 100;

/** What the control plane does next if nobody does anything. */
const NEXT: Readonly<Record<RunState, string>> = {
  queued: 'it starts by itself when it may',
  submitting: 'its job is being created',
  pending: 'its job waits for its instances, or prepares them',
  running: 'it trains on',
  resuming: 'its next attempt is being started',
  stopping: 'its job is being stopped',
  completed: 'nothing is left to do',
  failed: 'nothing starts again by itself',
  stopped: 'nothing starts again by itself',
};

/** Subject and text of a notice by e-mail: what happened to which run, what happens next, what it cost, and what to type. */
export function noticeMail(
  record: RunRecord,
  notice: Notice,
  place: NoticePlace,
): { Subject: string; Message: string } {
  const { runId, team, environment, state, attempt, committed } = record;
  const text = plainLine(notice.text, MAX_TEXT);
  const where = `--environment ${environment}/${team} --region ${place.region}`;
  const Message = [
    text,
    '',
    `run ${runId}, team ${team}, environment ${environment}, ${place.region}`,
    attempt ? `attempt ${attempt.number}, job ${attempt.jobName}` : 'no job yet',
    committed ? `committed step ${committed.step}` : 'nothing committed yet',
    costOf(record),
    `state ${state}: ${NEXT[state]}`,
    '',
    `slipway status ${runId} ${where}`,
    `slipway logs ${runId} ${where} --errors`,
    ...(isOver(record) && state !== 'completed' ? [`slipway resume ${runId} ${where}`] : []),
    `runbook: ${runbookAddress(notice.runbook, place.docsUrl)}`,
  ].join('\n');
  const Subject = plainLine(`Slipway: ${text}`, MAX_SUBJECT).replace(/[^\x20-\x7e]/g, '?');
  return { Subject, Message };
}

/** Of the attempts that have ended: what a live one costs is known only when it is seen. */
function costOf({ spentUsd, policy }: RunRecord): string {
  const cap = policy.maxCostUsd == null ? '' : ` of at most ${dollars(policy.maxCostUsd)}`;
  return `booked so far: ${spentUsd === null ? 'not known' : dollars(spentUsd)}${cap}`;
}
