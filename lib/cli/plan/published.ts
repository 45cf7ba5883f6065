import { PUBLISHED_RUNS, type PublishedMeasurement } from '../../core/catalog/published-runs';
import { resolveRun } from '../../core/config/resolve-run';
import type { RunSpec } from '../../core/config/run-spec';
import type { LayoutInput } from '../../core/planner/layout';
import { planLayout } from '../../core/planner/plan';
import { type PlanFacts, planRun, type RunPlan } from '../../core/planner/run/plan-run';
import type { PublishedRun } from '../../report/plan/plan-report';

/** Published measurements of the run's model on its instance type, each with the planner's prediction for that measurement. */
export function publishedBeside(run: RunSpec, plan: RunPlan, facts: PlanFacts): PublishedRun[] {
  return PUBLISHED_RUNS.filter((p) => p.instanceType === run.compute.instanceType).flatMap((published) => {
    const theirs = planRun(runOf(published), facts);
    if (Array.isArray(theirs) || !sameModel(plan.layout, theirs.layout)) return [];
    return [
      {
        name: published.name,
        source: published.source,
        nodes: published.instanceCount,
        measuredTokensPerSecondPerGpu: published.tokensPerSecondPerGpu,
        predictedTokensPerSecondPerGpu: theirs.tokensPerSecondPerGpu * speedOfTheirs(theirs.layout),
        isSameSetup: setupOf(plan.layout) === setupOf(theirs.layout),
      },
    ];
  });
}

function runOf(p: PublishedMeasurement): RunSpec {
  return resolveRun({
    name: 'published',
    model: { preset: p.preset },
    training: {
      sequenceLength: p.sequenceLength,
      microBatchSize: p.microBatchSize,
      activationCheckpointing: p.activationCheckpointing,
    },
    code: { source: 'builtin' },
    compute: { instanceType: p.instanceType, instanceCount: p.instanceCount },
    distribution: { library: 'fsdp', parameters: { compile: p.compile } },
  });
}

/** Speed with torchtitan's selective checkpointing, which recomputes half of the products, relative to that of the built-in trainer. */
function speedOfTheirs(layout: LayoutInput): number {
  if (layout.recompute !== 'products') return 1;
  const [theirs, ours] = [planLayout({ ...layout, recompute: 'op' }), planLayout(layout)];
  return typeof theirs === 'string' || typeof ours === 'string' ? 1 : ours.step.total / theirs.step.total;
}

const sameModel = (a: LayoutInput, b: LayoutInput) => JSON.stringify(a.model) === JSON.stringify(b.model);

/** Everything that distinguishes two runs except the size of the cluster and therefore the batch. */
function setupOf({ nodes, shard, replicate, globalBatch, ...rest }: LayoutInput): string {
  return JSON.stringify({ ...rest, shardsAll: replicate === 1 });
}
