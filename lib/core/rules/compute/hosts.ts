import { findInstanceType } from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { hostCount, onInstances, requestedGroupsOf, trainingGroupsOf } from '../../config/resolve-run';
import { type Rule, rule, ruleWhere, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { findStrategy } from '../../distribution';
import { divisorsUpTo } from '../../distribution/parameters';
import { namedTypes } from '../../distribution/strategy';
import { commonDivisor, hostsOfDomain } from '../../distribution/ultra-servers';
import { eachChannel } from '../data/data-places';
import { BUILTIN_LAYOUT_RULES } from '../model/builtin-layout';
import { TRAINING_RULES } from '../model/training';
import { modesBesideManaged } from '../own-code';

/** Hosts of this type are sold and connected in groups of 18, so an additional one is not useful. */
const ULTRASERVER = 'ml.p6e-gb200.36xlarge';
/** More spare hosts than this share of the hosts that train (if more than one) are probably a mistake. */
const USUAL_SHARE = 1 / 4;

function counts({ compute }: RunSpec): { path: string; hosts: number }[] {
  if (compute.instanceGroups.length > 0) return [];
  const others = compute.alternatives.flatMap(({ instanceCount }, i) =>
    instanceCount === undefined ? [] : [{ path: `compute.alternatives[${i}].instanceCount`, hosts: instanceCount }],
  );
  return [{ path: 'compute.instanceCount', hosts: compute.instanceCount }, ...others];
}

const SPARE_RULES: readonly Rule[] = [
  rule('compute/spare-hosts', 'error', (run) => {
    const { compute, kind } = run;
    const path = 'compute.spareInstances';
    if (kind !== 'training') return { path, must: 'must be 0 in a processing run, whose hosts are independent' };
    if (compute.instanceGroups.length > 0)
      return {
        path,
        must: 'must be 0 with instanceGroups: a host can only be replaced by one of the same type',
        fix: 'remove it, or use instanceType and instanceCount',
      };
    return namedTypes(run).flatMap(({ path: at, type }) =>
      when(type === ULTRASERVER, at, {
        must: `must not be ${ULTRASERVER} with spareInstances: its hosts come in groups of 18`,
        fix: 'remove spareInstances, or use another type',
      }),
    );
  }),
  ...[
    rule('compute/spare-launcher', 'error', ({ distribution }) => {
      const { contract, launcher: given, library, collectives } = distribution;
      const fixed = given === 'mpi' || given === 'ray';
      const why = fixed ? `${given} fixes its hosts when it starts` : 'a script finds its hosts by itself';
      return [
        ...when(contract !== 'entrypoint', 'distribution.contract', {
          must: 'must be entrypoint with compute.spareInstances: the driver activates the spare host',
          fix: 'use entrypoint, or remove spareInstances',
        }),
        ...when(given !== 'torchrun', 'distribution.launcher', {
          must: `must be torchrun with compute.spareInstances: ${why}`,
          fix: 'use torchrun, or remove spareInstances',
        }),
        ...when(library.startsWith('smp-'), 'distribution.library', {
          must: 'must not be smp-v1 or smp-v2 with compute.spareInstances: they read the list of hosts themselves',
          fix: 'use fsdp, or remove spareInstances',
        }),
        ...when(collectives === 'smddp', 'distribution.collectives', {
          must: 'must not be smddp with compute.spareInstances: it reads the list of hosts itself',
          fix: 'use nccl, or remove spareInstances',
        }),
      ];
    }),
    rule('compute/spare-data', 'error', (run) =>
      eachChannel(run, (channel, at) =>
        when(channel.s3DataDistribution === 'ShardedByS3Key', `${at}.s3DataDistribution`, {
          must: 'must be FullyReplicated with compute.spareInstances: the shard of a spare host would not be used for training',
          fix: 'use FullyReplicated, or remove spareInstances',
        }),
      ),
    ),
    rule('compute/spare-checkpoints', 'error', (run) => {
      const { mode } = run.checkpoints;
      const modes = modesBesideManaged(run);
      const why =
        mode === 'managed'
          ? 'SageMaker restores managed ones only when a job starts'
          : 'there is nothing to restart from';
      return when(mode === 'none' || mode === 'managed', 'checkpoints.mode', {
        must: `must be ${orList(modes)} with compute.spareInstances: ${why}`,
        fix: `use ${modes[0]}, or remove spareInstances`,
      });
    }),
    rule('compute/spare-share', 'warning', (run) => {
      const { spareInstances } = run.compute;
      return counts(run).flatMap(({ path, hosts: training }) =>
        when(spareInstances > Math.max(1, training * USUAL_SHARE), 'compute.spareInstances', {
          must: `must be at most a quarter of the ${training} hosts of ${path} to be cost-effective`,
          fix: `use ${Math.max(1, Math.floor(training * USUAL_SHARE))}; every attempt starts with that many`,
        }),
      );
    }),
  ].map(trainingRule),
].map(ruleWhere(({ compute }) => compute.spareInstances > 0));

/** Types whose instances are in UltraServers: https://aws.amazon.com/ec2/ultraservers/, 2026-11-22. */
const ULTRASERVER_TYPES = /^ml\.(p6e-gb200|trn2u)\./;

const PLACEMENT_RULES: readonly Rule[] = [
  rule('compute/infra-check', 'error', ({ kind, compute }) =>
    when(kind === 'processing' && compute.infraCheck !== undefined, 'compute.infraCheck', {
      must: 'must be used with a training job: CreateProcessingJob has no such check',
    }),
  ),
  rule('compute/placement', 'error', ({ kind, compute }) => {
    const { placement: given, alternatives, instanceGroups, instanceType } = compute;
    if (given === undefined) return [];
    const instances = hostCount(requestedGroupsOf(compute));
    const servers = given.ultraServers ?? [];
    const placed = hostCount(servers);
    const most = findInstanceType(instanceType)?.accelerator?.ultraServerInstances ?? Number.POSITIVE_INFINITY;
    const path = 'compute.placement';
    return [
      ...when(kind === 'processing', path, { must: 'must be used with a training job', got: kind }),
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
      ...servers.flatMap(({ instanceCount }, i) =>
        when(instanceCount > most, `${path}.ultraServers[${i}].instanceCount`, {
          must: `must be at most the ${most} instances of one UltraServer`,
          fix: 'use several UltraServers',
        }),
      ),
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

/** A capacity options with more sizes than this would take too long before it starts again. */
const MAX_SIZES = 8;
/** Libraries of the built-in trainer whose checkpoints can be loaded on another number of ranks, because PyTorch DCP reshards them. */
const RESHARDS: readonly string[] = ['fsdp', 'ddp'];
const COUNT = 'compute.instanceCount';

/** Rules that every size must satisfy, in addition to the layout of its library: those that use the number of hosts. */
const SIZE_RULES = ['training/global-batch', 'training/builtin-layout', 'compute/spare-hosts'];

/**
 * The numbers of instances with which an elastic run may start, largest first; empty for a run that is not elastic. The global batch does
 * not change, so a size is valid if the micro-batches divide it and the degrees of the layout divide the ranks. If there are many, eight
 * with approximately equal ratios.
 */
export function elasticSizes(run: RunSpec): number[] {
  const { elastic } = run.compute;
  if (!elastic || elastic.min > elastic.max) return [];
  const all = Array.from({ length: elastic.max - elastic.min + 1 }, (_, i) => elastic.max - i);
  return spread(all.filter((count) => isPossible(onInstances(run, count))));
}

function isPossible(run: RunSpec): boolean {
  const strategy = findStrategy(run);
  if (strategy && run.code.builtin === 'builtin' && !strategy.layout(run)) return false;
  const rules = [...TRAINING_RULES, ...BUILTIN_LAYOUT_RULES, ...HOST_RULES].filter(({ id }) => SIZE_RULES.includes(id));
  return rules.every(
    (rule) => rule.level !== 'error' || rule.check(run, {}).every((found) => found.level === 'warning'),
  );
}

/** The largest and the smallest size, and sizes between them with approximately equal ratios. */
function spread(sizes: readonly number[]): number[] {
  const [most = 1, least = 1] = [sizes[0], sizes.at(-1)];
  if (sizes.length <= MAX_SIZES) return [...sizes];
  const wanted = Array.from({ length: MAX_SIZES }, (_, i) => most * (least / most) ** (i / (MAX_SIZES - 1)));
  const nearest = wanted.map((want) =>
    sizes.reduce((best, size) => (Math.abs(size - want) < Math.abs(best - want) ? size : best)),
  );
  return [...new Set(nearest)];
}

const ELASTIC_RULES: readonly Rule[] = [
  rule('compute/elastic', 'error', ({ kind, compute, distribution, code }) => {
    const { elastic } = compute;
    const got = elastic && `${elastic.min}-${elastic.max}`;
    const isCounted = compute.alternatives.some((a) => a.instanceCount !== undefined);
    return [
      ...when(kind !== 'training', COUNT, {
        must: 'must be one number in a processing run',
        got,
        fix: 'use one number',
      }),
      ...when(elastic !== undefined && elastic.min > elastic.max, `${COUNT}.min`, {
        must: `must be at most max ${elastic?.max}`,
        got: elastic?.min,
        fix: 'swap them',
      }),
      ...when(compute.instanceGroups.length > 0, COUNT, {
        must: 'must not be given with instanceGroups',
        got,
        fix: 'use instanceType with instanceCount',
      }),
      ...when(isCounted, 'compute.alternatives', {
        must: 'must not have their own counts when compute.instanceCount is {min, max}',
        got: compute.alternatives.map((a) => a.instanceCount),
        fix: 'remove instanceCount from the alternatives',
      }),
      ...when(code.builtin === 'builtin' && !RESHARDS.includes(distribution.library), COUNT, {
        must: `must be one number with ${distribution.library}, whose checkpoints can only be loaded with the same number of ranks`,
        got,
        fix: 'use one number, or distribution.library fsdp',
      }),
    ];
  }),
  rule('compute/elastic-checkpoints', 'error', ({ checkpoints: { mode }, compute: { elastic } }) =>
    when(mode === 'none', 'checkpoints.mode', {
      must: 'must not be none when compute.instanceCount is {min, max}: the next size continues from a checkpoint',
      got: `none with ${elastic?.min}-${elastic?.max}`,
      fix: 'set checkpoints, or use one number',
    }),
  ),
  rule('compute/elastic-sizes', 'error', (run) => {
    const { elastic } = run.compute;
    const found = elasticSizes(run);
    if (!elastic || elastic.min > elastic.max) return [];
    return when(found.length < 2 || found[0] !== elastic.max, COUNT, {
      must: `must allow its max and a smaller size with the same global batch size (allowed between ${elastic.min} and ${elastic.max}: ${found.join(', ') || 'none'})`,
      got: `{ min: ${elastic.min}, max: ${elastic.max} }`,
      fix: 'change min or max, microBatchSize or globalBatchSize; or use one number',
    });
  }),
  rule('compute/elastic-own-code', 'error, may acknowledge', ({ code, compute: { elastic } }) =>
    when(code.builtin === undefined, COUNT, {
      must: 'must be used with code whose checkpoints can be loaded with any number of ranks, and which keeps its global batch size',
      got: `custom code with ${elastic?.min}-${elastic?.max}`,
      fix: 'acknowledge compute/elastic-own-code with a description of how it does this, or use one number',
    }),
  ),
].map(ruleWhere(({ compute }) => compute.elastic !== undefined));

/** Rules for spare instances, placement and elastic runs. */
export const HOST_RULES: readonly Rule[] = [...SPARE_RULES, ...PLACEMENT_RULES, ...ELASTIC_RULES];
