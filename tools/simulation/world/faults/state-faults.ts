import { ITEM } from '../../../../lib/core/contracts/storage';
import type { SimMs, VirtualClock } from '../../core/clock';
import type { Fault } from '../../scenario/schema';
import type { SimTable } from '../../services/dynamodb';
import type { SimRun } from '../sim-run';

/** What these faults change: the table, and the run ids in it. */
interface StoredRuns {
  readonly clock: VirtualClock;
  readonly runs: readonly SimRun[];
  readonly table: SimTable;
}

interface Span {
  from: SimMs;
  to: SimMs;
  value: number;
}

/** Faults that hold for a period of time (lagging reads, differing clocks), and records as older versions wrote them. */
export class StateFaults {
  readonly mostIndexLagMs: number;
  private readonly describeLags: Span[];
  private readonly indexLags: Span[];
  private readonly clocks: Span[];
  /** Times at which faults begin and end. */
  private readonly edges: readonly SimMs[];

  constructor(
    private readonly faults: readonly Fault[],
    private readonly now: () => SimMs,
  ) {
    const spans = (key: 'describeLagSeconds' | 'indexLagSeconds' | 'clock') =>
      faults.flatMap((fault) => {
        const value = fault[key];
        const from = (fault.at ?? 0) * 1000;
        return value === undefined
          ? []
          : { from, to: (fault.to ?? Number.POSITIVE_INFINITY) * 1000, value: value * 1000 };
      });
    this.describeLags = spans('describeLagSeconds');
    this.indexLags = spans('indexLagSeconds');
    this.clocks = spans('clock');
    const edges = faults.flatMap(({ at = 0, to = at }) => [at * 1000, to * 1000]);
    this.edges = [...new Set(edges)].sort((a, b) => a - b);
    this.mostIndexLagMs = Math.max(0, ...this.indexLags.map(({ value }) => value));
  }

  describeLagMs(): number {
    return this.most(this.describeLags);
  }

  indexLagMs(): number {
    return this.most(this.indexLags);
  }

  /** How far the functions' clock is ahead of the services'. */
  skewMs(): number {
    if (this.clocks.length === 0) return 0;
    return this.holding(this.clocks).reduce((sum, { value }) => sum + value, 0);
  }

  /** Whether a fault begins or ends between these times. */
  hasEdge(from: SimMs, to: SimMs): boolean {
    const { edges } = this;
    let [low, high] = [0, edges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((edges[middle] as SimMs) < from) low = middle + 1;
      else high = middle;
    }
    return low < edges.length && (edges[low] as SimMs) <= to;
  }

  /** Removes fields from the table at the times that the scenario sets. */
  planStored(world: StoredRuns): void {
    for (const { stored, without = [], poison, at = 0, to } of this.faults) {
      if (stored === undefined) continue;
      world.clock.schedule(at * 1000, () => {
        if (!poison) return loseFields(world, stored, without);
        const heal = poisonItem(world, stored, poison);
        if (heal && to !== undefined) world.clock.schedule(to * 1000, heal);
      });
    }
  }

  private most(spans: readonly Span[]): number {
    return spans.length === 0 ? 0 : Math.max(0, ...this.holding(spans).map(({ value }) => value));
  }

  private holding(spans: readonly Span[]): Span[] {
    const now = this.now();
    return spans.filter(({ from, to }) => now >= from && now < to);
  }
}

/**
 * Makes the RUN item of a run unreadable.
 * @returns what restores it; undefined when there is no such item
 */
function poisonItem({ runs, table }: StoredRuns, id: string, kind: NonNullable<Fault['poison']>) {
  const runId = runs.find((run) => run.id === id)?.runId;
  const item = runId === undefined ? undefined : table.itemsOf(runId).find((one) => one.item?.S === ITEM.run);
  const text = item?.document?.S;
  if (!item || text === undefined) return undefined;
  // Another fault has made it unreadable already.
  if (!text.endsWith('}') || !text.includes('"policy"')) return undefined;
  const { policy: _, ...rest } = JSON.parse(text) as Record<string, unknown>;
  const documents = { json: text.slice(0, text.length / 2), field: JSON.stringify(rest), null: 'null' };
  table.overwrite({ ...item, document: { S: documents[kind] } });
  return () => table.overwrite(item);
}

/** Removes the fields from every document of the run that has them. */
function loseFields({ runs, table }: StoredRuns, id: string, paths: readonly string[]): void {
  const runId = runs.find((run) => run.id === id)?.runId;
  if (runId === undefined) return;
  for (const item of table.itemsOf(runId)) {
    const text = item.document?.S;
    if (text === undefined) continue;
    const document = JSON.parse(text) as Record<string, unknown>;
    const changed = paths.map((path) => remove(document, path.split('.'))).some(Boolean);
    if (changed) table.overwrite({ ...item, document: { S: JSON.stringify(document) } });
  }
}

function remove(document: Record<string, unknown>, path: readonly string[]): boolean {
  const [first = '', ...rest] = path;
  if (!Object.hasOwn(document, first)) return false;
  if (rest.length === 0) return delete document[first];
  const inner = document[first];
  return typeof inner === 'object' && inner !== null && remove(inner as Record<string, unknown>, rest);
}
