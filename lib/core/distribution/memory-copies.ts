import { findInstanceType } from '../catalog/instances/instances';
import { adapterParameters, QUANTIZED_BYTES } from '../catalog/model/linear-layers';
import {
  matrixParameters,
  type ParameterShape,
  parameterCount,
  parameterShape,
  sumOverBlocks,
} from '../catalog/model/parameters';
import constants from '../catalog/trainer-constants.json';
import { hostCount, trainingGroupsOf, worldSize } from '../config/resolve-run';
import type { MemoryCopies, RunSpec } from '../config/run-spec';
import { fsdpLayout, usesFsdp1 } from './fsdp';

/** Bytes per parameter of the training state: fp32 weights and two optimizer moments. */
export const STATE_BYTES_PER_PARAMETER = 12;
/** Frozen weights have no moments. */
const FROZEN_BYTES_PER_PARAMETER = 4;

/** Bytes of a run's state in checkpoints and copies. */
export function stateBytes({ lora }: RunSpec['training'], shape: ParameterShape): number {
  const all = parameterCount(shape);
  if (!lora) return STATE_BYTES_PER_PARAMETER * all;
  const packed = lora.quantization ? sumOverBlocks(shape, matrixParameters) : 0;
  const adapters = STATE_BYTES_PER_PARAMETER * adapterParameters(shape, lora);
  return FROZEN_BYTES_PER_PARAMETER * (all - packed) + QUANTIZED_BYTES * packed + adapters;
}

/** Each copy has two slots: while one is written, the other is complete. */
const SLOTS = 2;

const hostsOf = (run: RunSpec): number => hostCount(trainingGroupsOf(run));

/** Whether the program of a run keeps copies by itself: the built-in trainer with a backend whose state stays in place. */
const keepsCopies = (run: RunSpec): boolean =>
  run.code.builtin === 'builtin' && ['fsdp', 'ddp'].includes(run.distribution.library) && !usesFsdp1(run);

/** Whether the program of a run can keep copies: also a script that calls `keep_in_memory` of slipway_helper. */
export const canKeepCopies = (run: RunSpec): boolean => {
  const { contract, launcher } = run.distribution;
  const isScript = !run.code.builtin && contract === 'entrypoint' && launcher === 'torchrun';
  return run.kind === 'training' && (isScript || keepsCopies(run));
};

/** The copies of the state that a run keeps in host memory; undefined if it keeps none. */
export function memoryCopies(run: RunSpec): MemoryCopies | undefined {
  const { memory = 'auto', mode } = run.checkpoints;
  if (memory === 'off' || !canKeepCopies(run) || mode === 'none') return undefined;
  if (memory === 'auto') return keepsCopies(run) && hostsOf(run) > 1 ? { everySteps: 'auto', copies: 2 } : undefined;
  return { everySteps: memory.everySteps ?? 'auto', copies: memory.copies ?? (hostsOf(run) > 1 ? 2 : 1) };
}

/**
 * Host memory of these copies on one host: of the state of its ranks, of all copies (`gib`), and what they may use; undefined for a model or
 * instance type that is not known.
 */
export function copiesMemory(run: RunSpec, { copies }: MemoryCopies) {
  const types = trainingGroupsOf(run).map(({ instanceType }) => findInstanceType(instanceType)?.memoryGiB);
  if (!run.model || types.some((gib) => gib === undefined)) return undefined;
  const hosts = hostsOf(run);
  const replicas = run.distribution.library === 'ddp' ? worldSize(run) : (fsdpLayout(run)?.replicate ?? 1);
  const state = stateBytes(run.training, parameterShape(run.model.architecture));
  const stateGiB = (state * replicas) / hosts / 2 ** 30;
  // Copies are sent to another host unless a replica there is one.
  const isSent = copies === 2 && hosts > 1 && replicas === 1;
  const availableGiB = Math.min(...types.map((gib) => gib ?? 0)) * constants.copiesShareOfMemory;
  return { stateGiB, gib: stateGiB * SLOTS * (isSent ? 2 : 1), availableGiB, isSent };
}
