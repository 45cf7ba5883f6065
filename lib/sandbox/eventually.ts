import { setTimeout as sleep } from 'node:timers/promises';

/** How long and how often a condition is asked for, in milliseconds. */
export interface ConditionOptions {
  /** @default 30 */
  timeoutSeconds?: number;
  /** @default 0.1 */
  intervalSeconds?: number;
  /** What is waited for, for the error. @default the condition */
  what?: string;
}

/**
 * Asks again and again until the answer is neither undefined, null nor false.
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
