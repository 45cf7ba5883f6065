import { PublishCommand } from '@aws-sdk/client-sns';
import { QUOTAS_ITEM } from '../../core/contracts/run-table';
import { describeError } from '../shared/errors';
import type { ReconcileDeps } from './deps';
import { customNotification } from './effects/chat-message';

/** An instance quota, and how much of it all jobs of the account use. */
export interface QuotaUse {
  quota: string;
  code?: string;
  inUse: number;
  limit: number;
  percent: number;
}

/**
 * Notifies the environment's subscribers and chat channel of quotas that have reached the percentage of the alarm. Each quota is reported
 * once; it may be reported again after its use was below the percentage at two consecutive ticks, which is also when the alarm ends. The
 * alarm cannot name the quota, because its metric has no such dimension. The state is written after the notice, so that a notice may be
 * sent twice but is never lost.
 * @param full quotas at or above the percentage of the alarm
 * @param unread names of quotas whose limit could not be read: their state does not change
 */
export async function tellOfQuotas(
  deps: ReconcileDeps,
  full: readonly QuotaUse[],
  unread: readonly string[],
): Promise<void> {
  const told = await deps.store.findNotified(QUOTAS_ITEM);
  const added = full.filter(({ quota }) => !told.includes(quota) && !told.includes(below(quota)));
  const names = full.map(({ quota }) => quota);
  const remembered = told.flatMap((entry) => {
    const quota = entry.startsWith(BELOW) ? entry.slice(BELOW.length) : entry;
    if (names.includes(quota)) return [];
    if (unread.includes(quota)) return [entry];
    return entry === quota ? [below(quota)] : [];
  });
  const next = [...names, ...remembered];
  if (next.length === told.length && next.every((entry) => told.includes(entry))) return;
  if (added.length > 0) await publish(deps, added);
  await deps.store.saveNotified(QUOTAS_ITEM, next);
}

/** Prefix of the name of a quota that was below the percentage at the last tick. */
const BELOW = 'below: ';
const below = (quota: string): string => `${BELOW}${quota}`;

async function publish(deps: ReconcileDeps, added: readonly QuotaUse[]): Promise<void> {
  const sentences = added.map(sentence);
  const shows = `slipway quota ${deps.environment} --region ${deps.region}`;
  const Subject = `Slipway ${deps.environment}: ${sentences[0]}`.slice(0, 100);
  const next = `every quota and what is in use: ${shows}\nto ask for what is missing and follow it: ${shows} --request --wait`;
  const Message = [...sentences, '', `environment ${deps.environment}, ${deps.region}`, next].join('\n');
  await deps.sns.send(new PublishCommand({ TopicArn: deps.topicArn, Subject, Message }));
  await tellChannel(deps, sentences, shows);
}

/** An error of the chat topic must not cause the e-mail to be sent again. */
async function tellChannel(deps: ReconcileDeps, sentences: readonly string[], shows: string): Promise<void> {
  const TopicArn = deps.chatTopics?.[''];
  if (!TopicArn) return;
  const content = {
    title: `Quotas of ${deps.environment} fill up`,
    description: sentences.join('\n'),
    nextSteps: [shows],
    keywords: ['quota', deps.environment],
  };
  try {
    await deps.sns.send(new PublishCommand({ TopicArn, Message: customNotification({ content }) }));
  } catch (error) {
    deps.log('error', 'a chat channel was not told of quotas', { error: describeError(error) });
  }
}

const sentence = ({ quota, code, inUse, limit, percent }: QuotaUse): string =>
  `${quota}${code ? ` (${code})` : ''}: ${inUse} of ${limit} in use (${percent} %)`;
