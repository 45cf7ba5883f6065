/**
 * `<environment>-<runId>-a001`: determined by the attempt, so that a repeated create call finds the existing job. It is stored in the table,
 * sent to SageMaker, and the prefix of the role's log streams.
 */
export function jobName(environment: string, runId: string, attempt: number): string {
  return `${environment}-${runId}-a${String(attempt).padStart(3, '0')}`;
}
