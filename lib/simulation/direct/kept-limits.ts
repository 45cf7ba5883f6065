import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { PAUSE_MS } from '../../handlers/shared/limit-reader';
import { type AppliedLimit, type Limits, limitOf, type QuotaNeed, quotaRequest, unreadLimit } from '../../quota';
import type { DirectCalls } from './direct-work';
import type { WorldOfLooks } from './world-of-looks';

const CALL = 'servicequotas:GetServiceQuota';
/** Longer than the rest of an invocation takes once limits have been read. */
export const REST_MS = 5000;

/**
 * Limits as ServiceQuotaReader reads them: those that its process has kept, and one call after the other for the rest. The function takes over
 * where a fault may touch the calls, and where a kept limit becomes too old meanwhile.
 */
export function readLimits(
  world: Pick<WorldOfLooks, 'clock' | 'gateway'>,
  calls: DirectCalls<ReconcileDeps>,
  needs: readonly Pick<QuotaNeed, 'name' | 'code'>[],
  then: (limits: Limits) => void,
): void {
  const { deps } = calls.work;
  const { kept } = deps.limits;
  const codes = [...new Set(needs.flatMap(({ code }) => code ?? []))];
  const now = deps.now().getTime();
  const missing = codes.filter((code) => !kept?.find(code, now));
  const later = now + missing.length * PAUSE_MS * 2 + REST_MS;
  const isSteady = codes.every((code) => missing.includes(code) || kept?.find(code, later));
  if (!kept || !isSteady || (missing.length > 0 && world.gateway.mayTouch([CALL]))) {
    calls.goOn();
    return;
  }
  readMissing(world, calls, missing, () => {
    const limits = kept.all(needs, deps.now().getTime());
    if (limits) then(limits);
    else calls.goOn();
  });
}

/** One after the other, as far apart as the service allows. */
function readMissing(
  world: Pick<WorldOfLooks, 'clock'>,
  calls: DirectCalls<ReconcileDeps>,
  [code, ...others]: readonly string[],
  then: () => void,
): void {
  const { deps } = calls.work;
  const { kept } = deps.limits;
  if (code === undefined || !kept) {
    then();
    return;
  }
  const keep = (limit: AppliedLimit) => {
    kept.keep(code, limit, deps.now().getTime());
    return true;
  };
  const ask = () =>
    calls.keptCall({
      name: CALL,
      input: quotaRequest(code),
      keep: (answer) => keep(limitOf(code, answer)),
      keepError: (error) => keep(unreadLimit(error)),
      next: () => readMissing(world, calls, others, then),
    });
  if (kept.isEmpty) ask();
  else world.clock.after(PAUSE_MS, ask);
}
