import { PublishCommand } from '@aws-sdk/client-sns';
import { plainLine } from '../../../core/config/formats/plain-text';
import type { Notice, RunRecord } from '../../../core/lifecycle/record';
import { runbookAddress } from '../../../core/lifecycle/timeline';
import type { ReconcileDeps } from '../deps';
import { quotaCommand, quotaSentence, stepsFor, whereOf } from './email';
import type { News, Notifier, QuotaUse } from './notify';

/** Publishes to the chat topics of the environment and of the run's team, once: an e-mail must not be repeated because of a chat topic. */
export const chatNotifier: Notifier = {
  ifRefused: { level: 'error', text: 'a chat channel was not notified' },
  deliveries: (deps, news) =>
    topicsFor(deps, news).map(
      (TopicArn) => () => deps.sns.send(new PublishCommand({ TopicArn, Message: messageFor(deps, news) })),
    ),
};

function topicsFor(deps: ReconcileDeps, news: News): string[] {
  if (news.about === 'state') return [];
  const channels = news.about === 'notice' ? ['', news.record.team] : [''];
  return channels.flatMap((name) => deps.chatTopics?.[name] ?? []);
}

function messageFor(deps: ReconcileDeps, news: News): string | undefined {
  if (news.about === 'notice') return chatMessage(news.record, news.notice, deps);
  return news.about === 'quotas' ? quotaMessage(deps, news.uses) : undefined;
}

/** A message may have 256 KiB; chat applications truncate titles that are longer than this. */
const MAX_TITLE = 250;

/** The displayed content, and the keys that identify a message and its thread. */
interface CustomNotification {
  id?: string;
  content: { title: string; description: string; nextSteps: readonly string[]; keywords: readonly string[] };
  metadata?: object;
}

/**
 * A message in the format of Amazon Q Developer in chat applications, which drops any other format.
 * https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html (2026-11-22)
 */
const customNotification = (message: CustomNotification): string =>
  JSON.stringify({
    version: '1.0',
    source: 'custom',
    ...message,
    content: { textType: 'client-markdown', ...message.content },
  });

/** Message for a notice of a run. All notices of a run are in one thread. */
export function chatMessage(
  record: RunRecord,
  notice: Notice,
  deps: Pick<ReconcileDeps, 'docsUrl' | 'runbooks' | 'region'>,
): string {
  const { runId, team, environment, state, attempt, committed } = record;
  const steps = stepsFor(record, notice, deps).map((step) => step.replace(/^(\d+\.|-) /, ''));
  return customNotification({
    id: `${runId}/${plainLine(notice.id)}`,
    content: {
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

const quotaMessage = (deps: ReconcileDeps, uses: readonly QuotaUse[]): string =>
  customNotification({
    content: {
      title: `Quotas of ${deps.environment} fill up`,
      description: uses.map(quotaSentence).join('\n'),
      nextSteps: [quotaCommand(deps)],
      keywords: ['quota', deps.environment],
    },
  });

/** These characters start mentions and links in Slack's markdown, and a reason may contain text of the user's program. */
const plain = (text: string): string => plainLine(plainLine(text).replace(/[<>]/g, '').replace(/&/g, 'and'), MAX_TITLE);
