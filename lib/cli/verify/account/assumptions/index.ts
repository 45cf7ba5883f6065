import type { Assumption, AssumptionArea, Level } from '../assumption';
import { CUDA, EFA, NETWORK } from './cluster';
import { CONTAINER } from './container';
import { DEPLOYMENT } from './deployment';
import { CATALOG, QUOTAS } from './facts';
import { PERMISSIONS } from './permissions';
import { TRAINING_JOBS } from './training-jobs';

/** All untested assumptions about AWS and GPUs, by subject. */
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

/** All assumptions of all areas. */
export const ASSUMPTIONS: readonly Assumption[] = ASSUMPTION_AREAS.flatMap((area) => area.assumptions);

const BY_ID = new Map(ASSUMPTIONS.map((assumption) => [assumption.id, assumption]));

/** @throws Error when there is no assumption with this id, which is an error in a probe */
export function requireAssumption(id: string): Assumption {
  const found = BY_ID.get(id);
  if (!found) throw new Error(`no assumption ${id}; add it to lib/cli/verify/account/assumptions`);
  return found;
}

/** The assumptions tested at one level, in the order of the page. */
export const assumptionsOf = (level: Level): Assumption[] => ASSUMPTIONS.filter(({ probe }) => probe === level);
