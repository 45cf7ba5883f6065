import { orList } from '../../config/issue';
import { type Rule, rule, ruleWhere, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { eachChannel } from '../data/channel-names';
import { modesBesideManaged } from '../own-code';
import { namedTypes } from './types';

/** Hosts of this type are sold and connected in groups of 18, so an additional one is not useful. */
const ULTRASERVER = 'ml.p6e-gb200.36xlarge';
/** More spare hosts than this share of the hosts that train (if more than one) are probably a mistake. */
const USUAL_SHARE = 1 / 4;

/** All paths of the file that set the number of hosts that train; empty when they are in groups. */
function counts({ compute }: RunSpec): { path: string; hosts: number }[] {
  if (compute.instanceGroups.length > 0) return [];
  const others = compute.alternatives.flatMap(({ instanceCount }, i) =>
    instanceCount === undefined ? [] : [{ path: `compute.alternatives[${i}].instanceCount`, hosts: instanceCount }],
  );
  return [{ path: 'compute.instanceCount', hosts: compute.instanceCount }, ...others];
}

/** Rules for spare instances, which apply only to runs with some. */
export const SPARE_RULES: readonly Rule[] = [
  rule('compute/spare-hosts', 'error', (run) => {
    const { compute, kind } = run;
    const path = 'compute.spareInstances';
    if (kind !== 'training')
      return { path, must: 'must be 0 in a processing run, whose hosts are independent', fix: 'remove it' };
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
