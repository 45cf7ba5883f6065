/** Maximum length of FailureReason, characters. */
const MAX_REASON = 1024;

export class JobFailure extends Error {
  constructor(
    /** First word of a FailureReason; the service does not guarantee the rest. */
    readonly family: 'AlgorithmError' | 'ClientError' | 'CapacityError' | 'InternalServerError',
    detail: string,
  ) {
    super(`${family}: ${detail}`.slice(0, MAX_REASON));
  }
}

/** The failure that SageMaker reports for faults of its own. */
export const internalError = () =>
  new JobFailure('InternalServerError', 'We encountered an internal error. Please try again.');

/** The failure that SageMaker reports when it has no instances. */
export const capacityError = () =>
  new JobFailure(
    'CapacityError',
    'Unable to provision requested ML compute capacity. Please retry using a different ML instance type.',
  );

/** The failure that SageMaker reports for faults of the request, its data or its permissions. */
export const clientError = (detail: string) => new JobFailure('ClientError', detail);

/** The container of one instance exited with `exitCode`; `written` is the content of /opt/ml/output/failure. */
export function algorithmError(written: string, exitCode: number): JobFailure {
  return new JobFailure('AlgorithmError', written ? `${written}, exit code: ${exitCode}` : `, exit code: ${exitCode}`);
}
