import { dlcImageUri, huggingFaceImageUri, neuronImageUri, smpImageUri } from '../catalog/images/images';
import type { RunSpec } from '../config/run-spec';
import { findStrategy } from '../distribution';
import { acceleratorKind, instanceTypeOfImage } from '../distribution/image-version';
import { pythonJson } from '../distribution/python-json';
import type { JobPlan } from './plan';

/**
 * Hyperparameters of the toolkit contract: the user's, the keys of the SDK's script mode and those of the distribution, each as JSON text
 * in Python's format. Byte for byte the same as from the SageMaker Python SDK v2.
 */
export function toolkitHyperparameters(plan: JobPlan, jobName: string): Record<string, string> {
  const { run, code } = plan;
  const submitDirectory = run.network.isolation ? '/opt/ml/input/data/code/sourcedir.tar.gz' : (code?.uri ?? '');
  const values: Record<string, unknown> = {
    ...run.hyperparameters,
    // `false` leaves an argument out under each contract; the toolkit passes all others as `--key value`.
    ...Object.fromEntries(Object.entries(run.code.arguments).filter(([, value]) => value !== false)),
    sagemaker_submit_directory: submitDirectory,
    sagemaker_program: run.code.entryPoint,
    sagemaker_container_log_level: 20,
    sagemaker_job_name: jobName,
    sagemaker_region: plan.region,
    ...findStrategy(run)?.hyperparameters(run),
  };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, pythonJson(value)]));
}

/** Hyperparameters of the entrypoint contract are only displayed in the console, so text is not encoded. */
export function plainHyperparameters(plan: JobPlan): Record<string, string> {
  return Object.fromEntries(
    Object.entries(plan.run.hyperparameters).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : pythonJson(value),
    ]),
  );
}

/** URI of a run's image; undefined when there is none (the rules `image/*` report the reason). */
export function imageUri(run: RunSpec, region: string, environmentImage?: string): string | undefined {
  const { kind, version = '', uri } = run.image;
  const type = instanceTypeOfImage(run);
  const accelerator = acceleratorKind(type);
  switch (kind) {
    case 'environment':
      return environmentImage;
    case 'uri':
      return uri;
    case 'dlc':
      return accelerator === 'neuron'
        ? neuronImageUri(version, region)
        : dlcImageUri(version, region, accelerator === 'gpu');
    case 'smp':
      return smpImageUri(version, region, type);
    case 'huggingface':
      return huggingFaceImageUri(version, region);
  }
}
