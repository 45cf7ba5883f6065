import type { Attempt, EpochMs, Pauses } from '../record';

/** Secondary statuses of a job that waits for its instances, before its first start and after an interruption. */
export const WAITS_FOR_INSTANCES: readonly string[] = ['Starting', 'Pending'];

/**
 * Secondary statuses of a job whose instances were taken away.
 * https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training-status.html
 */
export const INTERRUPTED: readonly string[] = ['Interrupted', 'Restarting'];

/** Secondary statuses in which a job holds no instances; empty until it is first described. */
export const WITHOUT_INSTANCES: ReadonlySet<string> = new Set(['', ...WAITS_FOR_INSTANCES, ...INTERRUPTED]);

/** Statuses that end a pause; a job that is stopped during an interruption does not get its instances back. */
const WITH_INSTANCES: ReadonlySet<string> = new Set([
  'Downloading',
  'DownloadingTrainingImage',
  'Training',
  'Uploading',
]);

/**
 * The pauses of a job.
 * @param transitions its secondary statuses, oldest first, each with its start
 */
export function pausesOf(transitions: readonly { status: string; at: EpochMs }[]): Pauses {
  let [ms, times] = [0, 0];
  let hadInstances = false;
  let since: EpochMs | undefined;
  for (const { status, at } of transitions) {
    if (WITH_INSTANCES.has(status)) {
      ms += since === undefined ? 0 : at - since;
      since = undefined;
      hadInstances = true;
    } else if (hadInstances && WITHOUT_INSTANCES.has(status) && since === undefined) {
      since = at;
      times += 1;
    }
  }
  return { ms, ...(since !== undefined && { since }), ...(times > 0 && { times }) };
}

/** Milliseconds with instances from the start of training until `until`. */
export function trainedMs({ trainingStartedAt, pauses }: Attempt, until: EpochMs): number {
  if (trainingStartedAt === undefined) return 0;
  const last = Math.min(until, pauses?.since ?? until);
  return Math.max(0, last - trainingStartedAt - (pauses?.ms ?? 0));
}
