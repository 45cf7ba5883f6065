import { type Issue, issue } from '../config/issue';
import type { RunSpec } from '../config/run-spec';
import { stateGiB } from '../planner/plan';
import { type NeuronPlan, planNeuron } from '../planner/run/neuron';
import { planRun } from '../planner/run/plan-run';

/** A run on one of the clusters that it may get. */
interface Shape {
  /** Option that selects it. */
  path: string;
  run: RunSpec;
}

/** The cluster as written, and one for each alternative that the service may choose instead. */
function shapesOf(run: RunSpec): Shape[] {
  const alternatives = run.compute.alternatives.map((alternative, i) => ({
    path: `compute.alternatives[${i}].instanceType`,
    run: on(run, alternative),
  }));
  return [{ path: 'training', run }, ...alternatives];
}

const on = (run: RunSpec, { instanceType, instanceCount }: RunSpec['compute']['alternatives'][number]): RunSpec => ({
  ...run,
  compute: {
    ...run.compute,
    instanceType,
    instanceCount: instanceCount ?? run.compute.instanceCount,
    alternatives: [],
  },
});

interface Shortfall {
  needed: number;
  available: number;
  /** The kind of device. */
  of: 'GPU' | 'NeuronCore';
  advice: string;
}

/** GiB needed and available, and possible remedies, when the planner supports the run and it cannot fit; undefined in every other case. */
function shortfall(run: RunSpec, region: string): Shortfall | undefined {
  const neuron = planNeuron(run);
  if (neuron !== undefined) return Array.isArray(neuron) ? undefined : shortfallOfCores(neuron);
  const plan = planRun(run, { region });
  if (Array.isArray(plan) || plan.fits !== 'oom') return undefined;
  const advice = plan.advice.map((a) => a.change).join(', or ');
  return { needed: plan.memoryGiB.total, available: plan.memoryGiB.available, of: 'GPU', advice };
}

/** The case in which weights, gradients and optimizer do not fit into all NeuronCores together. */
function shortfallOfCores({ fits, layouts, coreGiB }: NeuronPlan): Shortfall | undefined {
  if (fits !== 'oom') return undefined;
  const needed = Math.min(...layouts.map(({ memoryGiB }) => stateGiB(memoryGiB)));
  return { needed, available: coreGiB, of: 'NeuronCore', advice: 'use more instances' };
}

/** Issues for every cluster that the run may get and into which it does not fit. Clusters that the planner does not support are skipped. */
export function memoryIssues(run: RunSpec, region: string): Issue[] {
  return shapesOf(run).flatMap(({ path, run: shape }) => {
    const short = shortfall(shape, region);
    if (!short) return [];
    return issue('plan/memory', 'error', path, {
      must: `must fit the ${short.available.toFixed(0)} GiB of one ${short.of} of ${shape.compute.instanceType || 'its groups'}`,
      got: `${short.needed.toFixed(0)} GiB`,
      fix:
        path === 'training'
          ? short.advice || 'use more instances, or a smaller batch'
          : 'leave it out, or plan it with more instances',
    });
  });
}

/** Whether the run's layout fits into GPU memory according to the planner; true if the planner cannot tell. */
export const fitsMemory = (run: RunSpec, region: string): boolean => shortfall(run, region) === undefined;

/** The run without the alternatives into which it does not fit, so that the request is based on current knowledge. */
export function withFittingAlternatives(run: RunSpec, region: string): RunSpec {
  const alternatives = run.compute.alternatives.filter((alternative) => fitsMemory(on(run, alternative), region));
  return alternatives.length === run.compute.alternatives.length
    ? run
    : { ...run, compute: { ...run.compute, alternatives } };
}
