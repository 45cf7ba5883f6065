import { worldSize } from '../../config/resolve-run';
import { rulesAbout } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { parameterPath } from '../parameters';

/** Megatron-LM's own list of command-line flags. */
export const MEGATRON_SOURCE = 'https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py';

/** Number of ranks over which each expert is split; by default those of the tensor-parallel group. */
export const EXPERT_TENSOR = 'expert-tensor-parallel-size';

/** A flag by name, with hyphens, underscores or leading dashes. */
export function flag(run: RunSpec, name: string): { key: string; value: unknown } | undefined {
  const plain = (key: string) => key.replace(/^-+/, '').replaceAll('_', '-');
  const entry = Object.entries(run.distribution.parameters).find(([key]) => plain(key) === name);
  return entry && { key: entry[0], value: entry[1] };
}

/** A parallel size; `without` if it is not given. */
export function size(run: RunSpec, name: string, without = 1): number {
  const value = flagNumber(run, name) ?? without;
  return Number.isInteger(value) && value > 0 ? value : 1;
}

/** The given parallel sizes, and the number of ranks that they divide. */
export function megatronSizes(run: RunSpec) {
  const tensor = size(run, 'tensor-model-parallel-size');
  return {
    world: worldSize(run),
    tensor,
    pipeline: size(run, 'pipeline-model-parallel-size'),
    context: size(run, 'context-parallel-size'),
    expert: size(run, 'expert-model-parallel-size'),
    expertTensor: size(run, EXPERT_TENSOR, tensor),
  };
}

/** The value of a flag that is a whole number; undefined when it is not given. */
export function flagNumber(run: RunSpec, name: string): number | undefined {
  const value = flag(run, name)?.value;
  return typeof value === 'number' ? value : undefined;
}

/** Path of a flag in the run file, in the user's own spelling. */
export const flagPath = (run: RunSpec, name: string) => parameterPath(flag(run, name)?.key ?? name);

/** Makes a rule of Megatron. */
export const megatronRule = rulesAbout((run) =>
  run.distribution.library === 'megatron' ? megatronSizes(run) : undefined,
);
