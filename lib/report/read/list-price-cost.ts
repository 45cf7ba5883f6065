import { findPrice } from '../../core/catalog/prices/prices';
import type { ReportAttempt, ReportCost } from '../run/run-report';

/**
 * Cost of the attempts at on-demand list prices. Billed time is the service's value, otherwise the time from the start of training to the
 * end, or to `readAt` for a live job; it is wall-clock time and is multiplied by the number of instances.
 */
export function listPriceCost(attempts: readonly ReportAttempt[], region: string, readAt: string): ReportCost {
  const types = new Set(attempts.flatMap((a) => a.instances ?? []).map((i) => i.instanceType));
  const prices = [...types].sort().map((instanceType) => {
    const price = findPrice(instanceType, region);
    return { instanceType, usdPerHour: price?.usdPerHour ?? null, note: price?.note ?? 'no source has a price' };
  });
  const rates = new Map(prices.map((p) => [p.instanceType, p.usdPerHour]));
  const costs = attempts.map((a) => attemptCost(a, rates, readAt));
  return { prices, attempts: costs, totalUsd: sum(costs.map((c) => c.usd)) };
}

function attemptCost(
  attempt: ReportAttempt,
  rates: ReadonlyMap<string, number | null>,
  readAt: string,
): ReportCost['attempts'][number] {
  const instances = attempt.instances ?? [];
  const seconds = attempt.billableSeconds ?? trainedSeconds(attempt, readAt);
  const base = { number: attempt.number, instances, seconds };
  // Nothing is billed before training starts.
  if (seconds === 0) return { ...base, usd: 0 };
  if (attempt.instances === undefined) return { ...base, usd: null };
  const parts = instances.map(({ instanceType, count }) => {
    const rate = rates.get(instanceType) ?? null;
    return rate === null ? null : (rate * count * seconds) / 3600;
  });
  return { ...base, usd: sum(parts) };
}

const trainedSeconds = ({ startedAt, endedAt }: ReportAttempt, readAt: string): number =>
  startedAt === null ? 0 : Math.max(0, (Date.parse(endedAt ?? readAt) - Date.parse(startedAt)) / 1000);

/** null if any part is not known. */
const sum = (parts: readonly (number | null)[]): number | null =>
  parts.reduce<number | null>((total, part) => (total === null || part === null ? null : total + part), 0);
