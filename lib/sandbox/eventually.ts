import { setTimeout as sleep } from 'node:timers/promises';

/** How long and how often a condition is polled. */
export interface ConditionOptions {
  /** @default 30 */
  timeoutSeconds?: number;
  /** @default 0.1 */
  intervalSeconds?: number;
  /** Description of the condition, for the error. @default the condition */
  what?: string;
}

/**
 * Polls until the result is neither undefined, null nor false.
 * @throws Error after the timeout
 */
export async function eventually<T>(
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  { timeoutSeconds = 30, intervalSeconds = 0.1, what = 'the condition' }: ConditionOptions = {},
): Promise<T> {
  const deadline = Date.now() + timeoutSeconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`${what} must hold within ${timeoutSeconds} s`);
    await sleep(intervalSeconds * 1000);
  }
}
