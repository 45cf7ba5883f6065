import { QUOTAS_ITEM } from '../../core/contracts/run-table';
import type { ReconcileDeps } from './deps';
import type { QuotaUse } from './notify/notifier';
import { notify } from './notify/notify';

/**
 * Notifies the environment's subscribers and chat channel of quotas that have reached the percentage of the alarm. Each quota is reported
 * once; it may be reported again after its use was below the percentage at two consecutive ticks, which is also when the alarm ends. The
 * alarm cannot name the quota, because its metric has no such dimension. The state is written after the notice, so that a notice may be
 * sent twice but is never lost.
 * @param full quotas at or above the percentage of the alarm
 * @param unread names of quotas whose limit could not be read: their state does not change
 */
export async function notifyOfQuotas(
  deps: ReconcileDeps,
  full: readonly QuotaUse[],
  unread: readonly string[],
): Promise<void> {
  const notified = await deps.store.findNotified(QUOTAS_ITEM);
  const added = full.filter(({ quota }) => !notified.includes(quota) && !notified.includes(below(quota)));
  const names = full.map(({ quota }) => quota);
  const remembered = notified.flatMap((entry) => {
    const quota = entry.startsWith(BELOW) ? entry.slice(BELOW.length) : entry;
    if (names.includes(quota)) return [];
    if (unread.includes(quota)) return [entry];
    return entry === quota ? [below(quota)] : [];
  });
  const next = [...names, ...remembered];
  if (next.length === notified.length && next.every((entry) => notified.includes(entry))) return;
  if (added.length > 0) await notify(deps, { about: 'quotas', uses: added });
  await deps.store.saveNotified(QUOTAS_ITEM, next);
}

/** Prefix of the name of a quota that was below the percentage at the last tick. */
const BELOW = 'below: ';
const below = (quota: string): string => `${BELOW}${quota}`;
