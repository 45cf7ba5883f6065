import { EXIT } from './exit';

/** What each exit code means, as the pages of the command line say it. */
export const EXIT_MEANINGS: readonly [code: number, meaning: string][] = [
  [EXIT.done, 'done'],
  [EXIT.refused, 'refused by validation, plan, quota or guardrail'],
  [EXIT.usage, 'wrong usage, or a file that cannot be read'],
  [EXIT.service, 'a service call failed'],
  [EXIT.runFailed, 'the run ended Failed (with --wait)'],
  [EXIT.interrupted, 'interrupted'],
];
