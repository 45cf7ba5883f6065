import type { Assumption, AssumptionArea, Level } from '../assumption';
import { CONTAINER } from './container';
import { CUDA } from './cuda';
import { DEPLOYMENT } from './deployment';
import { EFA } from './efa';
import { CATALOG, QUOTAS } from './facts';
import { NETWORK } from './network';
import { PERMISSIONS } from './permissions';
import { TRAINING_JOBS } from './training-jobs';

/** Everything that the product takes for granted about AWS and GPUs and has not seen, by subject. */
export const ASSUMPTION_AREAS: readonly AssumptionArea[] = [
  TRAINING_JOBS,
  CONTAINER,
  PERMISSIONS,
  DEPLOYMENT,
  NETWORK,
  QUOTAS,
  CATALOG,
  EFA,
  CUDA,
];

/** Every assumption, area by area. */
export const ASSUMPTIONS: readonly Assumption[] = ASSUMPTION_AREAS.flatMap((area) => area.assumptions);

const BY_ID = new Map(ASSUMPTIONS.map((assumption) => [assumption.id, assumption]));

/** @throws Error when no assumption has this id, which is a mistake in a probe */
export function requireAssumption(id: string): Assumption {
  const found = BY_ID.get(id);
  if (!found) throw new Error(`no assumption ${id}; add it to lib/verify/assumptions`);
  return found;
}

/** The assumptions whose probe belongs to one level, in the order of the page. */
export const assumptionsOf = (level: Level): Assumption[] => ASSUMPTIONS.filter(({ probe }) => probe === level);
