import { PublishCommand } from '@aws-sdk/client-sns';
import { runbookAddress } from '../../core/lifecycle/timeline';
import { describeError } from '../shared/errors';
import { orUnreadable, UnreadableItem } from '../shared/stored';
import type { ReconcileDeps } from './deps';

/**
 * Notifies people, once, of items of the run table that cannot be read. Such a run is left out of everything until the item is repaired;
 * no other run waits for it. What was read again is forgotten, so that the same item may be reported again later.
 * @param items all that were found
 * @param kind of these items: those of the other kind, of which people were notified before, are read again
 */
export async function reportUnreadable(
  deps: ReconcileDeps,
  kind: 'RUN' | 'INTENT',
  items: readonly UnreadableItem[],
): Promise<void> {
  for (const { message } of items) deps.log('error', 'an item of the run table was left out', { error: message });
  try {
    const before = await deps.store.findNotified();
    const names = items.map(({ runId }) => `${kind}/${runId}`);
    const others = before.filter((name) => !name.startsWith(`${kind}/`));
    const isStill = await Promise.all(others.map((name) => isUnreadable(deps, name)));
    const next = [...others.filter((_, place) => isStill[place]), ...names];
    if (next.length === before.length && next.every((name) => before.includes(name))) return;
    const fresh = items.filter(({ runId }) => !before.includes(`${kind}/${runId}`));
    if (fresh.length > 0) await publish(deps, fresh);
    await deps.store.saveNotified(next);
  } catch (error) {
    deps.log('error', 'unreadable items were not reported', { error: describeError(error) });
  }
}

/** It may have been repaired or deleted since people were notified of it. */
async function isUnreadable({ store }: ReconcileDeps, name: string): Promise<boolean> {
  const [kind, runId = ''] = name.split('/');
  const found = await orUnreadable<unknown>(kind === 'RUN' ? store.find(runId) : store.findIntent(runId));
  return found instanceof UnreadableItem;
}

const MAX_NAMED = 20;

async function publish(deps: ReconcileDeps, items: readonly UnreadableItem[]): Promise<void> {
  const [first] = items;
  const more = items.length > MAX_NAMED ? [`and ${items.length - MAX_NAMED} more`] : [];
  const Subject = `Slipway ${deps.environment}: run ${first?.runId} cannot be read`.slice(0, 100);
  const Message = [
    ...items.slice(0, MAX_NAMED).map(({ message, team }) => `${message}${team ? ` (team ${team})` : ''}`),
    ...more,
    '',
    'These runs are left out: they are not started, stopped or counted, and a job of theirs that trains goes on.',
    `environment ${deps.environment}, ${deps.region}`,
    `runbook: ${runbookAddress('unreadable', deps.docsUrl)}`,
  ].join('\n');
  await deps.sns.send(new PublishCommand({ TopicArn: deps.topicArn, Subject, Message }));
}
