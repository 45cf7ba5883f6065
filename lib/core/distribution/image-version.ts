import { fullPytorchVersion, fullTransformersVersion, HUGGING_FACE_IMAGES } from '../catalog/images/images';
import { findInstanceType } from '../catalog/instances/instances';
import { instanceGroupsOf } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';

/**
 * The instance type that determines the build of an AWS image: the first type with GPUs, whether or not its group trains, otherwise the
 * first of all. The SDK does the same (sagemaker 2.257.7 estimator.py _get_instance_type); hosts without GPUs use the GPU build too.
 */
export function instanceTypeOfImage(run: RunSpec): string {
  const types = instanceGroupsOf(run.compute).map((g) => g.instanceType);
  return types.find((type) => acceleratorKind(type) === 'gpu') ?? types[0] ?? '';
}

/** GPU or Neuron; undefined for CPU types and unknown ones. */
export const acceleratorKind = (type: string) => findInstanceType(type)?.accelerator?.kind;

/** PyTorch version of the run's image if the run file states it; undefined for the environment's image and unknown URIs. */
export function pytorchOfImage(run: RunSpec): string | undefined {
  const { kind, version, uri } = run.image;
  if (kind === 'uri')
    return /\/(?:pytorch-training|pytorch|smdistributed-modelparallel):(\d+\.\d+(?:\.\d+)?)/.exec(uri ?? '')?.[1];
  if (!version) return undefined;
  if (kind === 'dlc') return fullPytorchVersion(version) ?? version;
  if (kind === 'huggingface') return HUGGING_FACE_IMAGES[fullTransformersVersion(version) ?? '']?.pytorch;
  return kind === 'smp' ? version : undefined;
}

/** Below 0 when version `a` is older than `b`; missing parts count as 0. */
export function compareVersions(a: string, b: string): number {
  const [x, y] = [a, b].map((v) => v.split('.').map(Number)) as [number[], number[]];
  for (let i = 0; i < 3; i++) {
    const difference = (x[i] ?? 0) - (y[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
