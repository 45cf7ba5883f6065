import { PublishCommand } from '@aws-sdk/client-sns';
import { plainLine } from '../../../core/config/formats/plain-text';
import type { Notice, RunRecord } from '../../../core/lifecycle/record';
import { runbookAddress } from '../../../core/lifecycle/timeline';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { stepsFor, whereOf } from './email';

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
        `slipway status ${runId} ${whereOf(record, deps)}`,
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
