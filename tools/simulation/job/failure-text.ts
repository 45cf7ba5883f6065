import type { Loss } from './steps/restart';

/** FailureReason for a container that exited: the driver's failure file, then the exit code. */
export function algorithmError(
  code: number,
  kind: string,
  reason: string,
  { host = 'algo-1', step }: { host?: string; step?: number } = {},
): string {
  const file = JSON.stringify({ slipway: 1, class: kind, code, host, ...(step !== undefined && { step }), reason });
  return `AlgorithmError: ${file}, exit code: ${code}`;
}

/**
 * Failure file that the driver writes (containers/driver/slipway_driver) when an instance loses one of these.
 * @param step the last one that the driver saw
 */
export function lossText(lost: Loss | 'network', step?: number): string {
  switch (lost) {
    case 'rank':
      return algorithmError(134, 'native-crash', 'a rank was ended by signal 6', { host: 'algo-2', step });
    case 'two-hosts':
    case 'host':
      return algorithmError(75, 'peer-lost', "another host's ranks ended: lost", { step });
    case 'gpu':
      return algorithmError(75, 'hardware', 'Xid 79: GPU has fallen off the bus', { host: 'algo-2', step });
    case 'network':
      return algorithmError(75, 'peer-lost', 'the connection to another rank was lost', { step });
  }
}

/** FailureReason of a job that SageMaker itself failed. */
export const INTERNAL_ERROR = 'InternalServerError: We encountered an internal error. Please try again.';
