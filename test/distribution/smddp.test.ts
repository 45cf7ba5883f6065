import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../support/runs';

test.each([
  ['-x SMDDP_AG_SCRATCH_BUFFER_SIZE_BYTES=1000', ['distribution.mpiOptions']],
  ['-x SMDDP_AG_SORT_BUFFER_SIZE_BYTES=268435456', []],
])('a buffer size among the options of mpirun is judged too: %s', (mpiOptions, paths) => {
  const distribution = { library: 'ddp', launcher: 'mpi', contract: 'toolkit', collectives: 'smddp', mpiOptions };
  expect(issuesOf({ ...BASE, distribution }, 'smddp/buffers').map((i) => i.path)).toEqual(paths);
});
