import { expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../support/runs';

test('fails: the second of two groups is named where it stands', () => {
  const group = (name: string, instanceType: string) => ({ name, instanceType, instanceCount: 2 });
  const instanceGroups = [group('a', 'ml.p4d.24xlarge'), group('b', 'ml.p5.48xlarge')];
  const file = { ...BASE, compute: { instanceGroups }, distribution: { library: 'fsdp', collectives: 'smddp' } };
  expect(issuesOf(file, 'smddp/instance-type').map((i) => i.path)).toEqual(['compute.instanceGroups[1].instanceType']);
});

test.each([
  ['-x SMDDP_AG_SCRATCH_BUFFER_SIZE_BYTES=1000', ['distribution.mpiOptions']],
  ['-x SMDDP_AG_SORT_BUFFER_SIZE_BYTES=268435456', []],
])('a buffer size among the options of mpirun is judged too: %s', (mpiOptions, paths) => {
  const distribution = { library: 'ddp', launcher: 'mpi', contract: 'toolkit', collectives: 'smddp', mpiOptions };
  expect(issuesOf({ ...BASE, distribution }, 'smddp/buffers').map((i) => i.path)).toEqual(paths);
});

test.each([
  ['ddp', 'torchrun', 1],
  ['ddp', 'mpi', 0],
  ['fsdp', 'torchrun', 0],
])('AllReduce of SMDDP: %s under %s', (library, launcher, count) => {
  const contract = launcher === 'mpi' ? 'toolkit' : 'entrypoint';
  const distribution = { library, launcher, contract, collectives: 'smddp' };
  const found = issuesOf({ ...BASE, distribution }, 'smddp/allreduce-under-torchrun');
  expect(found.map((i) => i.level)).toEqual(Array(count).fill('warning'));
});

test.each([
  [{ kind: 'dlc', version: '2.0.1' }, undefined, []],
  [{ kind: 'dlc', version: '9.9.0' }, undefined, ['image.version']],
  [{ kind: 'environment' }, { pytorch: '9.9.0' }, ['image']],
  [{ kind: 'environment' }, { pytorch: '9.9.0', smddp: '2.8.0' }, []],
  [{ kind: 'environment' }, undefined, []],
])('an image %j of an environment with %j carries SMDDP or is refused', (image, carried, paths) => {
  const descriptor = { ...DESCRIPTOR, image: { ...DESCRIPTOR.image, pytorch: undefined, ...carried } } as never;
  const file = { ...BASE, image, distribution: { library: 'fsdp', collectives: 'smddp' } };
  expect(
    issuesOf(file, 'smddp/', { descriptor }).flatMap((i) => (i.message.includes('PyTorch') ? [i.path] : [])),
  ).toEqual(paths);
});
