import { acceleratorCount, findInstanceType } from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { trainingGroupsOf } from '../../config/resolve-run';
import { type Finding, when } from '../../config/rule';
import type { Launcher, RunSpec } from '../../config/run-spec';

/** Groups that take part must exist, and must be expressible in the contract. */
export function groups(run: RunSpec): Finding[] {
  const { distribution, compute } = run;
  const known = compute.instanceGroups.map((g) => g.name);
  const path = 'distribution.instanceGroups';
  if (distribution.instanceGroups.length > 0 && known.length === 0) {
    return [
      { path, must: 'must be used with compute.instanceGroups', got: distribution.instanceGroups, fix: 'remove it' },
    ];
  }
  const unknown = distribution.instanceGroups.flatMap((name, i) => [
    ...when(!known.includes(name), {
      path: `${path}[${i}]`,
      must: `must be a group of compute.instanceGroups (${orList(known)})`,
      got: name,
      fix: 'use one of them',
    }),
    ...when(distribution.instanceGroups.indexOf(name) !== i, {
      path: `${path}[${i}]`,
      must: 'must be listed once',
      got: name,
      fix: 'remove it',
    }),
  ]);
  if (unknown.length > 0 || distribution.contract !== 'toolkit' || known.length === 0) return unknown;
  return [
    // With torch_distributed, the SDK sets no groups, and each group trains separately (sagemaker-training 5.1.4 environment.py).
    ...when(distribution.launcher === 'torchrun' && known.length > 1, {
      path: 'distribution.launcher',
      must: 'must be mpi for several instance groups under the toolkit contract, which starts torchrun separately in each group',
      got: 'torchrun',
      fix: 'use mpi, or contract entrypoint',
    }),
    ...when(distribution.launcher === 'mpi' && known.length > 1 && distribution.instanceGroups.length !== 1, {
      path,
      must: 'must contain exactly one group under the toolkit contract',
      got: distribution.instanceGroups,
      fix: `use [${known[0]}]`,
    }),
  ];
}

/** Launchers that need not start the same number of processes on each host, because the script decides. */
const PLACES_ITSELF: readonly Launcher[] = ['script', 'ray'];

/** A launcher starts the same number of processes on every host that takes part. */
export function mixedGroups(run: RunSpec): Finding[] {
  const taking = trainingGroupsOf(run).filter((g) => findInstanceType(g.instanceType));
  if (PLACES_ITSELF.includes(run.distribution.launcher) || run.distribution.contract !== 'entrypoint') return [];
  const counts = differing(taking, 'the same number of accelerators', ({ instanceType }) =>
    acceleratorCount(instanceType),
  );
  if (counts.length > 0) return counts;
  // NCCL uses sockets for all hosts where one has no EFA, which ends a run that requires EFA.
  return differing(taking, 'EFA, or no host with it', ({ instanceType }) =>
    (findInstanceType(instanceType)?.efaInterfaces ?? 0) > 0 ? 'EFA' : 'none',
  );
}

type Group = ReturnType<typeof trainingGroupsOf>[number];

function differing(groups: readonly Group[], what: string, of: (group: Group) => number | string): Finding[] {
  const [most] = [...groups].sort((a, b) => acceleratorCount(b.instanceType) - acceleratorCount(a.instanceType));
  return when(new Set(groups.map(of)).size > 1, {
    path: 'distribution.instanceGroups',
    must: `must contain groups whose hosts have ${what}`,
    got: groups.map((group) => `${group.name}: ${of(group)}`),
    fix: `use [${most?.name}]`,
  });
}
