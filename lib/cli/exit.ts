import type { Issue } from '../core/config/issue';

/** Exit codes of docs/reference/command-line.md. */
export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  service: 3,
  runFailed: 4,
  internal: 70,
  interrupted: 130,
} as const;

/** Wrong usage or an unreadable file: one line, exit 2. */
export class UsageError extends Error {}

/** Checks a text that the launcher stores or searches for. */
export function requireText(option: string, text: string | undefined, most: number): void {
  if (text === undefined || (text.trim() !== '' && text.length <= most)) return;
  const must = `must have 1 to ${most.toLocaleString('en')} characters`;
  throw new UsageError(`${option}: ${must}, got ${text.length}; write another, or omit it`);
}

/** Rejected by validation, plan, quota or guardrail: prints every issue, exit 1. `details` is added to the JSON document. */
export class Refusal extends Error {
  constructor(
    readonly issues: Issue[],
    readonly details: Record<string, unknown> = {},
  ) {
    super('refused');
  }
}

/** A service call that failed after its retries: exit 3. */
export class ServiceError extends Error {}

/** A person ended the command before it was done: exit 130. */
export class Interrupted extends Error {}
