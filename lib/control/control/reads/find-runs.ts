import type { ListRequest } from '../../../core/contracts/control';
import type { RunRecord } from '../../../core/lifecycle/record';

/** Whether a run matches the filter of `list`: all given conditions must hold. */
export function isWanted(run: RunRecord, { states, tags, search }: Pick<ListRequest, 'states' | 'tags' | 'search'>) {
  const own = Object.entries(run.tags ?? {});
  const hasTag = (tag: string) => own.some(([key, value]) => tag === key || tag === `${key}=${value}`);
  const texts = [run.runId, run.name, run.note ?? '', run.reason, ...own.map(([key, value]) => `${key}=${value}`)];
  const has = (text: string) => texts.some((one) => one.toLowerCase().includes(text.toLowerCase()));
  return (
    (!states || states.includes(run.state)) && (!tags || tags.every(hasTag)) && (search === undefined || has(search))
  );
}
