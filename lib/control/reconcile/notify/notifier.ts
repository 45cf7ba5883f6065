import type { Notice, RunRecord } from '../../../core/lifecycle/record';
import type { ReconcileDeps } from '../deps';

/** An instance quota, and how much of it all jobs of the account use. */
export interface QuotaUse {
  quota: string;
  code?: string;
  inUse: number;
  limit: number;
  percent: number;
}

/** What people or programs are notified of. */
export type News =
  | { about: 'notice'; record: RunRecord; notice: Notice }
  | { about: 'state'; before: RunRecord; after: RunRecord }
  | { about: 'quotas'; uses: readonly QuotaUse[] };

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
