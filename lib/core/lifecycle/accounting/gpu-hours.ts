import { findInstanceType } from '../../catalog/instances/instances';
import { instancesOfAttempt } from '../capacity-options';
import type { Attempt, EpochMs, RunRecord } from '../record';
import { trainedMs } from './pauses';

/**
 * GPU-hours of an attempt until `until`, from the start of training and without interruptions, as the service bills them. 0 without GPUs;
 * undefined for a type that is not in the catalog, or a capacity option that the run no longer has.
 */
export function gpuHours(record: Pick<RunRecord, 'policy'>, attempt: Attempt, until: EpochMs): number | undefined {
  const types = instancesOfAttempt(record, attempt)?.map(({ instanceType, instanceCount }) => ({
    type: findInstanceType(instanceType),
    instanceCount,
  }));
  if (!types || types.some(({ type }) => type === undefined)) return undefined;
  const gpus = types.reduce((sum, { type, instanceCount }) => sum + gpusOf(type?.accelerator) * instanceCount, 0);
  return (gpus * trainedMs(attempt, until)) / 3_600_000;
}

const gpusOf = (accelerator: { kind: string; count: number } | undefined): number =>
  accelerator?.kind === 'gpu' ? accelerator.count : 0;
