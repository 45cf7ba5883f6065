import { PublishCommand } from '@aws-sdk/client-sns';
import { jobConsoleUrl } from '../../../core/catalog/regions';
import { plainLine } from '../../../core/config/formats/plain-text';
import { runCommand } from '../../../core/contracts/names';
import { dollars, runSpendUsd } from '../../../core/lifecycle/accounting/spend';
import { type EpochMs, isOver, type Notice, type RunRecord, type RunState } from '../../../core/lifecycle/record';
import { runbookAddress, runbookSteps } from '../../../core/lifecycle/timeline';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';

/** Publishes a notice to the topic of the environment, to which people subscribe by e-mail and programs by HTTPS or SQS. */
export async function sendMail(deps: ReconcileDeps, record: RunRecord, notice: Notice): Promise<void> {
  const MessageAttributes = attributesOf({ notice: plainLine(notice.id), run: record.runId, team: record.team });
  const mail = { ...noticeMail(record, notice, deps), MessageAttributes };
  await deps.sns.send(new PublishCommand({ TopicArn: deps.topicArn, ...mail }));
}

/** Attributes by which a subscription's filter policy can select notices, for example those of one team. */
const attributesOf = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([name, StringValue]) => [name, { DataType: 'String', StringValue }]));

/** Of a text that contains words of a job: a message of SNS may have 256 KiB, and an event of EventBridge too. */
export const MAX_TEXT = 2000;

/** https://docs.aws.amazon.com/sns/latest/api/API_Publish.html, 2026-11-26 */
const MAX_SUBJECT = 100;

/** What the control plane does next if nobody does anything. */
const NEXT: Readonly<Record<RunState, string>> = {
  queued: 'it starts as soon as the queue admits it',
  submitting: 'its job is being created',
  pending: 'its job waits for its instances, or prepares them',
  running: 'it continues to train',
  resuming: 'its next attempt is being started',
  stopping: 'its job is being stopped',
  completed: 'nothing is left to do',
  failed: 'nothing starts again by itself',
  stopped: 'nothing starts again by itself',
};

/** Subject and text of a notice by e-mail: what happened to which run, what happens next, what it cost, and what to type. */
function noticeMail(
  record: RunRecord,
  notice: Notice,
  place: Pick<ReconcileDeps, 'region' | 'docsUrl' | 'runbooks' | 'now'>,
): { Subject: string; Message: string } {
  const { runId, team, environment, state, attempt, committed } = record;
  const text = plainLine(notice.text, MAX_TEXT);
  const where = { name: environment, team, region: place.region };
  const Message = [
    text,
    '',
    `run ${runId}, team ${team}, environment ${environment}, ${place.region}`,
    attempt ? `attempt ${attempt.number}, job ${attempt.jobName}` : 'no job yet',
    committed ? `committed step ${committed.step}` : 'nothing committed yet',
    costOf(record, place.now().getTime()),
    `state ${state}: ${NEXT[state]}`,
    '',
    runCommand('status', runId, where),
    runCommand('logs', runId, where, '--errors'),
    ...(isOver(record) && state !== 'completed' ? [runCommand('resume', runId, where)] : []),
    ...(attempt?.jobArn ? [`job: ${jobConsoleUrl(place.region, record.kind, attempt.jobName)}`] : []),
    `runbook: ${runbookAddress(notice.runbook, place.docsUrl)}`,
    ...stepsFor(record, notice, place),
  ].join('\n');
  const Subject = plainLine(`Slipway: ${text}`, MAX_SUBJECT).replace(/[^\x20-\x7e]/g, '?');
  return { Subject, Message };
}

/** What to do by the runbook, for readers to whom no link to it can be given. */
const stepsFor = (
  { runId }: RunRecord,
  { runbook }: Notice,
  { docsUrl, runbooks = '' }: Pick<ReconcileDeps, 'docsUrl' | 'runbooks'>,
): string[] => (docsUrl ? [] : runbookSteps(runbooks, runbook, runId));

/** The amount that `slipway status` shows. */
function costOf(record: RunRecord, now: EpochMs): string {
  const { maxCostUsd } = record.policy;
  const spent = runSpendUsd(record, now);
  const cap = maxCostUsd == null ? '' : ` of at most ${dollars(maxCostUsd)}`;
  return `cost so far: ${spent === null ? 'not known' : dollars(spent)}${cap}`;
}

/** Publishes a notice to the chat topics of the environment and of the run's team, once: a refusal is only logged. */
export async function sendChat(deps: ReconcileDeps, record: RunRecord, notice: Notice): Promise<void> {
  for (const TopicArn of ['', record.team].flatMap((name) => deps.chatTopics?.[name] ?? [])) {
    try {
      await deps.sns.send(new PublishCommand({ TopicArn, Message: chatMessage(record, notice, deps) }));
    } catch (error) {
      const about = { runId: record.runId, notice: notice.id };
      deps.log('error', 'a chat channel was not notified', { ...about, error: describeError(error) });
    }
  }
}

/** A message may have 256 KiB; chat applications truncate titles that are longer than this. */
const MAX_TITLE = 250;

/**
 * Message for a notice of a run, in the format of Amazon Q Developer in chat applications, which drops any other format. All notices of a run
 * are in one thread. https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html (2026-11-22)
 */
export function chatMessage(
  record: RunRecord,
  notice: Notice,
  deps: Pick<ReconcileDeps, 'docsUrl' | 'runbooks' | 'region'>,
): string {
  const { runId, team, environment, state, attempt, committed } = record;
  const steps = stepsFor(record, notice, deps).map((step) => step.replace(/^(\d+\.|-) /, ''));
  return JSON.stringify({
    version: '1.0',
    source: 'custom',
    id: `${runId}/${plainLine(notice.id)}`,
    content: {
      textType: 'client-markdown',
      title: plain(notice.text),
      description: [
        `team ${team}, environment ${environment}, state ${state}`,
        attempt ? `job ${attempt.jobName}` : 'no job yet',
        committed ? `committed step ${committed.step}` : 'nothing committed yet',
      ].join('\n'),
      nextSteps: [
        ...(steps.length > 0 ? steps : [`Read ${runbookAddress(notice.runbook, deps.docsUrl)}`]),
        runCommand('status', runId, { name: environment, team, region: deps.region }),
      ],
      keywords: [notice.alert, team, environment],
    },
    metadata: {
      threadId: runId,
      summary: plain(notice.text),
      eventType: notice.alert,
      additionalContext: { run: runId, team, environment, runbook: notice.runbook },
    },
  });
}

/** These characters start mentions and links in Slack's markdown, and a reason may contain text of the user's program. */
const plain = (text: string): string => plainLine(plainLine(text).replace(/[<>]/g, '').replace(/&/g, 'and'), MAX_TITLE);
