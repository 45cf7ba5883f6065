import type { RunSpec } from '../../spec/run-spec';
import { dataParallelLayout, type ParallelLayout, strategy } from '../strategy';
import { RAY_RULES } from './rules';

/** One worker on each GPU. How the script divides its model among them is its own, so that a plan takes full sharding, and says so. */
function layout(run: RunSpec): ParallelLayout {
  const plain = dataParallelLayout(run);
  return { ...plain, shard: plain.worldSize, replicate: 1 };
}

/** Own code on a Ray cluster that the driver starts over all hosts of the job. */
export const ray = strategy({
  name: 'ray',
  summary: 'own code on the first host of a Ray cluster over all hosts (Ray Train, verl)',
  libraries: ['custom'],
  matches: (library, launcher) => launcher === 'ray' && !library.startsWith('smp-'),
  layout,
  rules: RAY_RULES,
});
