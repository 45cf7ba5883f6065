import { descriptorParameter } from '../../contracts/launcher';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { STEADY_DESCRIPTOR_MS } from '../../handlers/reconcile/reconcile-run';
import { CACHE_MS, readDescriptor } from '../../handlers/shared/descriptors';
import { isSteady } from '../../lifecycle/health/look';
import type { RunRecord } from '../../lifecycle/record';
import type { SimMs } from '../core/clock';
import type { DirectCalls } from './direct-work';
import { LOOK_MS, type WorldOfLooks } from './world-of-looks';

/** A look at a run, begun at that time. */
interface BegunLook {
  calls: DirectCalls<ReconcileDeps>;
  record: RunRecord;
  began: SimMs;
}

/** Goes on once the execution environment has the descriptor of the run's team, by its own clock; else the function takes over. */
export function withDescriptor(world: WorldOfLooks, { calls, record, began }: BegunLook, then: () => void): void {
  const { slot, deps } = calls.work;
  const { team } = record;
  const most = isSteady(record) ? STEADY_DESCRIPTOR_MS : CACHE_MS;
  const askedAt = slot.parametersAskedAt.get(descriptorParameter(deps.environment, team));
  const age = askedAt === undefined ? Number.POSITIVE_INFINITY : Math.abs(world.functionsNow() - askedAt);
  if (age + LOOK_MS < most) {
    then();
    return;
  }
  // What the process keeps of it is its own: it is asked. An error is one that the function meets too.
  if (age < most) {
    calls.goOn();
    return;
  }
  world.clock.wake();
  readDescriptor(deps, team, most).then(
    () => (world.clock.now - began > LOOK_MS ? calls.goOn() : then()),
    (error) => calls.goOnAfter(error),
  );
}
