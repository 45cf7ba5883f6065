import pc from 'picocolors';
import type { NeuronLayout, NeuronPlan } from '../../../core/planner/run/neuron';
import { memoryParts, planTable } from './plan-text';

const gib = (value: number) => value.toFixed(1);

/** Text for a plan on Trainium, on one screen. */
export function neuronText(name: string, plan: NeuronPlan): string {
  const verdict = plan.fits === 'oom' ? 'does not fit' : 'not known whether it fits';
  const rows = [
    ['memory', `${verdict}: ${gib(plan.coreGiB)} GiB a NeuronCore, before what its runtime takes`],
    ...plan.layouts.flatMap((layout) => layoutRows(layout)),
    ['speed', 'not known'],
    ['cost', 'not known'],
  ];
  return [
    `${pc.bold(name)}: ${(plan.parameters / 1e9).toFixed(1)} B parameters on ${plan.cores} NeuronCores of ${plan.instanceType}`,
    planTable(rows),
    ...plan.assumptions.map((a) => pc.dim(`assumed: ${a}`)),
  ].join('\n');
}

const layoutRows = ({ tensor, shard, memoryGiB }: NeuronLayout): string[][] => [
  ['', `tensor ${tensor} x FSDP ${shard}: ${gib(memoryGiB.total)} GiB`],
  ['', `  ${memoryParts(memoryGiB)}`],
];
