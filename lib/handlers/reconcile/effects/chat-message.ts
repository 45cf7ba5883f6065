import type { Notice, RunRecord } from '../../../lifecycle/record';

/** A message may have 256 KiB; a title longer than this is cut by chat applications. */
const MOST_TITLE = 250;

/** What is shown, and what tells messages apart and joins them to threads. */
interface CustomNotification {
  id?: string;
  content: { title: string; description: string; nextSteps: readonly string[]; keywords: readonly string[] };
  metadata?: object;
}

/**
 * A message as Amazon Q Developer in chat applications takes it: anything else it drops.
 * https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html (2026-11-22)
 */
export const customNotification = (message: CustomNotification): string =>
  JSON.stringify({
    version: '1.0',
    source: 'custom',
    ...message,
    content: { textType: 'client-markdown', ...message.content },
  });

/** A notice of a run. Those of one run stay in one thread. */
export function chatMessage(record: RunRecord, notice: Notice): string {
  const { runId, team, environment, state, attempt, committed } = record;
  return customNotification({
    id: `${runId}/${notice.id}`,
    content: {
      title: plain(notice.text).slice(0, MOST_TITLE),
      description: [
        `team ${team}, environment ${environment}, state ${state}`,
        attempt ? `job ${attempt.jobName}` : 'no job yet',
        committed ? `committed step ${committed.step}` : 'nothing committed yet',
      ].join('\n'),
      nextSteps: [`Read docs/runbooks/${notice.runbook}.md`, `slipway events ${runId}`],
      keywords: [notice.alert, team, environment],
    },
    metadata: {
      threadId: runId,
      summary: plain(notice.text).slice(0, MOST_TITLE),
      eventType: notice.alert,
      additionalContext: { run: runId, team, environment, runbook: notice.runbook },
    },
  });
}

/** Mentions and links of Slack's markdown begin with these: a reason may have words of the user's program in it. */
const plain = (text: string): string => text.replace(/[<>]/g, '').replace(/&/g, 'and').replace(/\s+/g, ' ');
