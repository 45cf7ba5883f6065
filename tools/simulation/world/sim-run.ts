import { textOf } from '../../../lib/control/shared/items';
import { recordOf } from '../../../lib/control/shared/run-store';
import type { Descriptor } from '../../../lib/core/config/descriptor';
import { runIdAt } from '../../../lib/core/job/plan';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import type { SimMs } from '../core/clock';
import { dateAt } from '../core/epoch';
import type { SimJob } from '../job/job';
import type { RunTruth } from '../job/steps/run-truth';
import type { ScenarioRun } from '../scenario/load';
import type { Item } from '../services/expression';

/** A notice that SNS accepted. */
export interface TakenNotice {
  at: SimMs;
  id: string;
  text: string;
  /** As it was published. */
  mail: { subject: string; message: string };
}

/** One run of a scenario: its calls, its jobs, and its records in the table. */
export class SimRun {
  runId: string | undefined;
  truth: RunTruth | undefined;
  /** Why control refused its start; undefined when it did not. */
  refusal: string | undefined;
  /** When control first accepted its start. */
  startedAt: SimMs | undefined;
  readonly jobs: SimJob[] = [];
  readonly notices: TakenNotice[] = [];
  /** When control accepted a stop, and a resume after it. */
  readonly requests: { at: SimMs; want: 'stop' | 'run' }[] = [];
  /** When the table first contained the run's current state. */
  stateSince: SimMs = 0;
  private item: Item | undefined;
  private parsed: RunRecord | undefined;
  private parsedItem: Item | undefined;

  constructor(
    readonly entry: ScenarioRun,
    readonly descriptor: Descriptor,
    /** The run id that its start requests: the scenario's id of it, followed by the time like every run id. */
    readonly plannedId: string,
  ) {}

  get id(): string {
    return this.entry.id;
  }

  get team(): string {
    return this.entry.team;
  }

  /** The RUN item as last written. */
  get written(): Item | undefined {
    return this.item;
  }

  write(item: Item, at: SimMs): void {
    if (item.state?.S !== this.item?.state?.S) this.stateSince = at;
    this.item = item;
  }

  /** When it completed, failed or was stopped. */
  get overAt(): SimMs | undefined {
    return this.isOver && this.item ? this.stateSince : undefined;
  }

  /** The record in the table; parsed on demand. While the item cannot be read it is the last one that could. */
  get record(): RunRecord | undefined {
    if (this.item === this.parsedItem) return this.parsed;
    this.parsedItem = this.item;
    try {
      if (this.item) this.parsed = recordOf(textOf(this.item));
    } catch {
      return this.parsed;
    }
    return this.parsed;
  }

  get state(): string {
    return this.item?.state?.S ?? (this.refusal === undefined ? 'not-started' : 'refused');
  }

  get isOver(): boolean {
    return ['completed', 'failed', 'stopped', 'refused'].includes(this.state);
  }

  /** Earliest time of its first job. If a run that waits for its start time is stopped and resumed, it may start immediately. */
  get mayStartAt(): SimMs {
    return this.requests.some(({ want }) => want === 'stop') ? 0 : (this.entry.startAt ?? 0) * 1000;
  }

  get wantsToRun(): boolean {
    return this.item?.desired?.S !== 'stop';
  }
}

/** A run id in the format of control, from the scenario's id. */
export const plannedId = ({ id, at = 0 }: ScenarioRun): string => runIdAt(id, dateAt(at * 1000));
