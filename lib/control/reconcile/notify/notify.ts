import type { Notice, RunRecord } from '../../../core/lifecycle/record';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { chatNotifier } from './chat';
import { emailNotifier } from './email';
import { eventBusNotifier } from './event-bus';

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
  }
}

/** What people or programs are notified of. */
export type News =
  | { about: 'notice'; record: RunRecord; notice: Notice }
  | { about: 'state'; before: RunRecord; after: RunRecord };

/** Sends one message. Rejects when the service did not accept it. */
type Delivery = () => Promise<unknown>;

/** One way to notify people or programs. `NOTIFIERS` in notify.ts lists all of them. */
export interface Notifier {
  /**
   * What follows when a message is not accepted. `repeat`: the caller keeps the news and sends it again, to every notifier. Otherwise the
   * failure is only logged, with this level and text, and the remaining deliveries follow.
   */
  ifRefused: 'repeat' | { level: 'warn' | 'error'; text: string };
  /** The messages to send, in order; empty for news that this notifier does not send. */
  deliveries(deps: ReconcileDeps, news: News): readonly Delivery[];
}
