import { expect, test } from 'vitest';
import { LIBRARIES, STRATEGIES } from '../../../lib/core/distribution';

const LAUNCHERS = ['torchrun', 'mpi', 'ray', 'script'] as const;
const COLLECTIVES = ['nccl', 'smddp', 'gloo'] as const;

test('every combination is served by one strategy, whatever their order', () => {
  for (const library of LIBRARIES)
    for (const launcher of LAUNCHERS)
      for (const collectives of COLLECTIVES) {
        const serving = STRATEGIES.filter((s) => s.matches(library, launcher, collectives));
        expect(
          serving.map((s) => s.name),
          `${library} ${launcher} ${collectives}`,
        ).toHaveLength(1);
      }
});
