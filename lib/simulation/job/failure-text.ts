/** FailureReason as the service gives it for a container that left: the driver's failure file, then the code. */
export function algorithmError(code: number, kind: string, reason: string, host = 'algo-1'): string {
  const file = JSON.stringify({ slipway: 1, class: kind, code, host, reason });
  return `AlgorithmError: ${file}, exit code: ${code}`;
}

/** What the driver writes (containers/driver/slipway_driver) when an instance loses one of these. */
export const LOSS_TEXT = {
  host: algorithmError(75, 'peer-lost', "another host's ranks ended: lost"),
  gpu: algorithmError(75, 'hardware', 'Xid 79: GPU has fallen off the bus', 'algo-2'),
  network: algorithmError(75, 'peer-lost', 'the connection to another rank was lost'),
} as const;

/** FailureReason of a job that SageMaker itself failed. */
export const INTERNAL_ERROR = 'InternalServerError: We encountered an internal error. Please try again.';
