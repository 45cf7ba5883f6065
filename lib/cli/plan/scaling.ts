import { acceleratorCount } from '../../core/catalog/instances/instances';
import type { RunSpec } from '../../core/config/run-spec';
import { type PlanFacts, planRun } from '../../core/planner/run/plan-run';
import type { ScalingPoint } from '../../report/plan/plan-report';

const NODES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** The same layout on 1 to 512 instances, with a proportional global batch. Sizes that its degrees do not divide are skipped. */
export function scalingOf(run: RunSpec, facts: PlanFacts): ScalingPoint[] {
  if (run.compute.instanceGroups.length > 0) return [];
  return NODES.flatMap((nodes) => {
    const plan = planRun(onNodes(run, nodes), facts);
    if (Array.isArray(plan)) return [];
    return [
      {
        nodes,
        tokensPerSecondPerGpu: plan.tokensPerSecondPerGpu,
        interval80: plan.interval80.tokensPerSecondPerGpu,
        fits: plan.fits,
      },
    ];
  });
}

function onNodes(run: RunSpec, nodes: number): RunSpec {
  const { globalBatchSize } = run.training;
  const share = nodes / run.compute.instanceCount;
  const gpus = nodes * acceleratorCount(run.compute.instanceType);
  const { shard_degree: shard } = run.distribution.parameters;
  const parameters =
    typeof shard === 'number'
      ? { ...run.distribution.parameters, shard_degree: Math.min(shard, gpus) }
      : run.distribution.parameters;
  return {
    ...run,
    training: {
      ...run.training,
      ...(globalBatchSize && { globalBatchSize: Math.max(1, Math.round(globalBatchSize * share)) }),
    },
    compute: { ...run.compute, instanceCount: nodes },
    distribution: { ...run.distribution, parameters },
  };
}
