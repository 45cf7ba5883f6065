import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { fromStoredNames } from '../../lib/control/shared/items';
import { ITEM } from '../../lib/core/contracts/storage';
import type { TimelineEvent } from '../../lib/core/lifecycle/action';
import type { Attempt } from '../../lib/core/lifecycle/record';
import type { SimRun } from './world/sim-run';
import type { World } from './world/world';

/** The timeline events of a run in the run table. */
export const timelineOf = (world: World, run: SimRun): TimelineEvent[] => documentsOf(world, run, ITEM.events);

/** The attempts of a run in the run table. */
export const attemptsOf = (world: World, run: SimRun): Attempt[] => documentsOf(world, run, ITEM.attempts);

/** The documents of the items of a run whose keys have this prefix. They are shared and must not be changed. */
const documentsOf = <T>(world: World, { runId = '' }: SimRun, prefix: string): T[] =>
  world.table
    .itemsOf(runId)
    .filter((item) => item.item?.S?.startsWith(prefix))
    .flatMap(({ document }) => (document ? [parsed(document) as T] : []));

/** Several invariants read each timeline at the end of a scenario. */
const known = new WeakMap<AttributeValue, unknown>();

function parsed(document: AttributeValue): unknown {
  const made = known.get(document) ?? fromStoredNames(JSON.parse(document.S ?? '{}'));
  known.set(document, made);
  return made;
}
