import type { RunRecord } from '../../../core/lifecycle/record';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { chatNotifier } from './chat';
import { emailNotifier } from './email';
import { eventBusNotifier } from './event-bus';
import type { News, Notifier } from './notifier';

/** In the order in which they are notified: one that repeats comes first, so that its failure does not repeat the messages of others. */
export const NOTIFIERS: readonly Notifier[] = [emailNotifier, chatNotifier, eventBusNotifier];

/** Sends news by every notifier. Rejects when one that repeats was refused: the caller must send the news again. */
export async function notify(deps: ReconcileDeps, news: News): Promise<void> {
  for (const { ifRefused, deliveries } of NOTIFIERS) {
    for (const deliver of deliveries(deps, news)) {
      try {
        await deliver();
      } catch (error) {
        if (ifRefused === 'repeat') throw error;
        deps.log(ifRefused.level, ifRefused.text, { ...identify(news), error: describeError(error) });
      }
    }
  }
}

/** Notifies of the state change of a run, if there is one. */
export async function announce(deps: ReconcileDeps, before: RunRecord, after: RunRecord): Promise<void> {
  if (before.state !== after.state) await notify(deps, { about: 'state', before, after });
}

/** What the log says of news. */
function identify(news: News): Record<string, unknown> {
  switch (news.about) {
    case 'notice':
      return { runId: news.record.runId, notice: news.notice.id };
    case 'state':
      return { runId: news.after.runId, state: news.after.state, previousState: news.before.state };
    case 'quotas':
      return { quotas: news.uses.map(({ quota }) => quota) };
  }
}
