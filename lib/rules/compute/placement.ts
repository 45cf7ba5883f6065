import { requestedGroupsOf } from '../../spec/resolve-run';
import type { RunSpec } from '../../spec/run-spec';
import { api, type Finding, type Rule, when } from '../rule';

/** Types whose instances lie in UltraServers: https://aws.amazon.com/ec2/ultraservers/, 2026-11-22. */
const ULTRASERVER_TYPES = /^ml\.(p6e-gb200|trn2u)\./;

function infraCheck({ kind, compute }: RunSpec): Finding[] {
  return when(kind === 'processing' && compute.infraCheck !== undefined, {
    path: 'compute.infraCheck',
    must: 'must go with a training job: CreateProcessingJob has no such check',
    got: compute.infraCheck,
    fix: 'remove it',
  });
}

function placement({ kind, compute }: RunSpec): Finding[] {
  const { placement: given, alternatives, instanceGroups, instanceType } = compute;
  if (given === undefined) return [];
  const instances = requestedGroupsOf(compute).reduce((sum, group) => sum + group.instanceCount, 0);
  const placed = (given.ultraServers ?? []).reduce((sum, server) => sum + server.instanceCount, 0);
  const path = 'compute.placement';
  return [
    ...when(kind === 'processing', {
      path,
      must: 'must go with a training job',
      got: kind,
      fix: 'remove it',
    }),
    ...when(alternatives.length > 0 || instanceGroups.length > 0, {
      path,
      must: 'must go with one instance type: the API takes it neither with preferences nor with groups',
      got: alternatives.length > 0 ? 'alternatives' : 'instanceGroups',
      fix: 'remove one of them',
    }),
    ...when(instanceType !== '' && !ULTRASERVER_TYPES.test(instanceType), {
      path,
      must: 'must go with a type in UltraServers',
      got: instanceType,
      fix: 'use ml.p6e-gb200.36xlarge, or remove it',
    }),
    ...when(placed > instances, {
      path: `${path}.ultraServers`,
      must: `must place at most the ${instances} instances of the job`,
      got: placed,
      fix: 'lower the counts',
    }),
  ];
}

/** Rules over UltraServers and placement. */
export const PLACEMENT_RULES: readonly Rule[] = [
  {
    id: 'compute/infra-check',
    level: 'error',
    what: "SageMaker's own check of the infrastructure is one of training jobs.",
    why: 'The request would be refused: processing jobs have no InfraCheckConfig.',
    source: api('CreateTrainingJob'),
    check: infraCheck,
  },
  {
    id: 'compute/placement',
    level: 'error',
    what: 'Placement names no more instances than the job has, on one type that lies in UltraServers.',
    why: 'The API applies it to UltraServer capacity only, and takes it neither with InstancePreferences nor with InstanceGroups.',
    source: api('InstancePlacementConfig'),
    check: placement,
  },
];
