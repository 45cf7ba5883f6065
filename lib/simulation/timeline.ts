import { ATTEMPT_ITEM_PREFIX, EVENT_ITEM_PREFIX } from '../contracts/run-table';
import type { TimelineEvent } from '../lifecycle/action';
import type { Attempt } from '../lifecycle/record';
import type { SimRun } from './world/sim-run';
import type { World } from './world/world';

/** The timeline events of a run in the run table. */
export const timelineOf = (world: World, { runId = '' }: SimRun): TimelineEvent[] =>
  world.table
    .itemsOf(runId)
    .filter((item) => item.item?.S?.startsWith(EVENT_ITEM_PREFIX))
    .map((item) => JSON.parse(item.document?.S ?? '{}') as TimelineEvent);

/** The attempts of a run in the run table. */
export const attemptsOf = (world: World, { runId = '' }: SimRun): Attempt[] =>
  world.table
    .itemsOf(runId)
    .filter((item) => item.item?.S?.startsWith(ATTEMPT_ITEM_PREFIX))
    .map((item) => JSON.parse(item.document?.S ?? '{}') as Attempt);
