import { findStrategy } from '../distribution';
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
    ...argumentsAsPairs(run.code.arguments),
    sagemaker_submit_directory: submitDirectory,
    sagemaker_program: run.code.entryPoint,
    sagemaker_container_log_level: 20,
    sagemaker_job_name: jobName,
    sagemaker_region: plan.region,
    ...findStrategy(run)?.hyperparameters(run),
  };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, pythonJson(value)]));
}

/** `false` leaves an argument out under each contract; the toolkit passes all others as `--key value`. */
const argumentsAsPairs = (given: JobPlan['run']['code']['arguments']) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== false));

/** Hyperparameters of the entrypoint contract are only displayed in the console, so text is not encoded. */
export function plainHyperparameters(plan: JobPlan): Record<string, string> {
  return Object.fromEntries(
    Object.entries(plan.run.hyperparameters).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : pythonJson(value),
    ]),
  );
}
