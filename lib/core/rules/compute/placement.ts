import { findInstanceType } from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { hostCount, requestedGroupsOf, trainingGroupsOf } from '../../config/resolve-run';
import { type Finding, type Rule, rule, when } from '../../config/rule';
import { findStrategy } from '../../distribution';
import { divisorsUpTo } from '../../distribution/parameters';
import { commonDivisor, hostsOfDomain } from '../../distribution/ultra-servers';

/** Types whose instances are in UltraServers: https://aws.amazon.com/ec2/ultraservers/, 2026-11-22. */
const ULTRASERVER_TYPES = /^ml\.(p6e-gb200|trn2u)\./;

/** Finding when more instances are placed together than an UltraServer has. */
function tooManyTogether(servers: readonly { instanceCount: number }[], instanceType: string): Finding[] {
  const most = findInstanceType(instanceType)?.accelerator?.ultraServerInstances ?? Number.POSITIVE_INFINITY;
  return servers.flatMap(({ instanceCount }, i) =>
    when(instanceCount > most, `compute.placement.ultraServers[${i}].instanceCount`, {
      must: `must be at most the ${most} instances of one UltraServer`,
      fix: 'use several UltraServers',
    }),
  );
}

/** Rules for UltraServers and placement. */
export const PLACEMENT_RULES: readonly Rule[] = [
  rule('compute/infra-check', 'error', ({ kind, compute }) =>
    when(kind === 'processing' && compute.infraCheck !== undefined, 'compute.infraCheck', {
      must: 'must be used with a training job: CreateProcessingJob has no such check',
      fix: 'remove it',
    }),
  ),
  rule('compute/placement', 'error', ({ kind, compute }) => {
    const { placement: given, alternatives, instanceGroups, instanceType } = compute;
    if (given === undefined) return [];
    const instances = requestedGroupsOf(compute).reduce((sum, group) => sum + group.instanceCount, 0);
    const placed = (given.ultraServers ?? []).reduce((sum, server) => sum + server.instanceCount, 0);
    const path = 'compute.placement';
    return [
      ...when(kind === 'processing', path, { must: 'must be used with a training job', got: kind, fix: 'remove it' }),
      ...when(alternatives.length > 0 || instanceGroups.length > 0, path, {
        must: 'must be used with one instance type: the API accepts it neither with InstancePreferences nor with InstanceGroups',
        got: alternatives.length > 0 ? 'alternatives' : 'instanceGroups',
        fix: 'remove one of them',
      }),
      ...when(instanceType !== '' && !ULTRASERVER_TYPES.test(instanceType), path, {
        must: 'must be used with a type in UltraServers',
        got: instanceType,
        fix: 'use ml.p6e-gb200.36xlarge, or remove it',
      }),
      ...tooManyTogether(given.ultraServers ?? [], instanceType),
      ...when(placed > instances, `${path}.ultraServers`, {
        must: `must place at most the ${instances} instances of the job`,
        got: placed,
        fix: 'reduce the counts',
      }),
    ];
  }),
  /**
   * Finding when some tensor-parallel groups are split between two UltraServers, because the number of GPUs of an UltraServer is not a
   * multiple of their size.
   */
  rule('compute/ultraserver-groups', 'warning', (run) => {
    const tensor = findStrategy(run)?.layout(run)?.tensor ?? 1;
    const hosts = hostsOfDomain(run);
    const { processesPerHost } = run.distribution;
    const gpus = hosts * processesPerHost;
    const isSplit = hosts > 1 && hosts < hostCount(trainingGroupsOf(run)) && tensor <= gpus && gpus % tensor !== 0;
    return when(isSplit, 'distribution.parameters', {
      must: `must divide the ${gpus} GPUs that a job has of each UltraServer into whole tensor-parallel groups`,
      got: tensor,
      fix: `use ${orList(divisorsUpTo(gpus, tensor))} as the degree of tensor parallelism, or place a multiple of ${tensor / commonDivisor(tensor, processesPerHost)} instances on each UltraServer (compute.placement)`,
    });
  }),
];
