import type { RunSpec } from '../../config/run-spec';
import { dataParallelLayout, type ParallelLayout, strategy } from '../strategy';
import { RAY_RULES } from './rules';

/** One worker per GPU. The script decides how it divides its model among them; a plan assumes full sharding and says so. */
function layout(run: RunSpec): ParallelLayout {
  const plain = dataParallelLayout(run);
  return { ...plain, shard: plain.worldSize, replicate: 1 };
}

/** Custom code on a Ray cluster that the driver starts over all hosts of the job. */
export const ray = strategy({
  name: 'ray',
  summary: 'own code on the first host of a Ray cluster over all hosts (Ray Train, verl)',
  libraries: ['custom'],
  matches: (library, launcher) => launcher === 'ray' && !library.startsWith('smp-'),
  layout,
  rules: RAY_RULES,
});
