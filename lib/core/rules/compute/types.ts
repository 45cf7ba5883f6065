import { findInstanceType, hasLocalNvme } from '../../catalog/instances/instances';
import type { RunSpec } from '../../config/run-spec';
import { writingKey } from '../../config/team-keys';
import { type Finding, type RuleContext, when } from '../rule';

/** All paths of the file that name an instance type. */
export function namedTypes(run: RunSpec): { path: string; type: string }[] {
  const { compute } = run;
  return [
    ...(compute.instanceType === '' ? [] : [{ path: 'compute.instanceType', type: compute.instanceType }]),
    ...compute.instanceGroups.map((g, i) => ({
      path: `compute.instanceGroups[${i}].instanceType`,
      type: g.instanceType,
    })),
    ...compute.alternatives.map((a, i) => ({ path: `compute.alternatives[${i}].instanceType`, type: a.instanceType })),
  ];
}

/** Either one type with a count, or groups. */
export function oneForm({ compute, written }: RunSpec): Finding[] {
  const plain = compute.instanceType !== '';
  const groups = compute.instanceGroups.length > 0;
  if (!plain && !groups)
    return [
      {
        path: 'compute.instanceType',
        must: 'must be given',
        fix: 'add instanceType: ml.p4d.24xlarge, or instanceGroups',
      },
    ];
  const counted = written.compute.instanceCount !== undefined && groups;
  return [
    ...when(counted, {
      path: 'compute.instanceCount',
      must: 'must not be given together with instanceGroups, which have their own counts',
      got: compute.instanceCount,
      fix: 'remove it',
    }),
    ...when(plain && groups, {
      path: 'compute.instanceGroups',
      must: 'must not be given together with compute.instanceType',
      got: compute.instanceGroups.map((g) => g.name),
      fix: 'keep one of the two',
    }),
  ];
}

/** Findings for names that an earlier group already has. */
export function groupNames({ compute }: RunSpec): Finding[] {
  const names = compute.instanceGroups.map((g) => g.name);
  return names.flatMap((name, i) =>
    when(names.indexOf(name) !== i, {
      path: `compute.instanceGroups[${i}].name`,
      must: 'must be unique among the groups',
      got: name,
      fix: 'use another name',
    }),
  );
}

/**
 * A request has one key for the volumes of all types, which types with local NVMe reject and an environment with a key requires of the others.
 */
export function mixedStorage(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor || writingKey(descriptor) === undefined) return [];
  const [first, ...others] = namedTypes(run).filter(({ type }) => findInstanceType(type));
  const odd = others.find(({ type }) => first && hasLocalNvme(type) !== hasLocalNvme(first.type));
  if (!first || !odd) return [];
  const has = hasLocalNvme(first.type);
  return [
    {
      path: odd.path,
      must: `must have local NVMe storage exactly if ${first.type} has it: SageMaker rejects the key of EBS volumes for types with it`,
      got: odd.type,
      fix: has
        ? 'use a type with it, such as ml.m5d, ml.r5d or ml.g5'
        : 'use a type without it, such as ml.m5 or ml.c5',
    },
  ];
}
