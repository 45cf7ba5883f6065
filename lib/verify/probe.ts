import type { Assumption, Level } from './assumption';
import { requireAssumption } from './assumptions';

/** Whether an assumption holds; `unknown` when the probe could not decide. */
export type Verdict = 'holds' | 'differs' | 'unknown';

/** What one look at an account showed. */
export interface Finding {
  readonly verdict: Verdict;
  /** What the product takes for granted, in the terms of what was measured. */
  readonly expected: string;
  /** What the account answered; no secret, no account id. */
  readonly seen: string;
}

/** Answers one assumption. A probe never throws for what the account answers: that is its finding. */
export interface Probe<World> {
  /** Id of the assumption. */
  readonly assumption: string;
  run(world: World): Promise<Finding>;
}

/** One line of the record and of `--json`. */
export interface ProbeResult extends Finding {
  /** `<level>/<assumption>`. */
  readonly id: string;
  /** Anchor in docs/assumptions.md. */
  readonly assumption: string;
  readonly seconds: number;
}

/** A finding by a condition, with what was expected and what was seen. */
export const holdsIf = (holds: boolean, expected: string, seen: string): Finding => ({
  verdict: holds ? 'holds' : 'differs',
  expected,
  seen,
});

/** A finding of a probe that could not decide, with why. */
export const unknown = (expected: string, seen: string): Finding => ({ verdict: 'unknown', expected, seen });

/** At most five of a list, and how many more there are. */
export function firstFive(items: readonly string[], separator = '; '): string {
  const rest = items.length - 5;
  return [...items.slice(0, 5), ...(rest > 0 ? [`and ${rest} more`] : [])].join(separator);
}

const DENIED = /AccessDenied|UnauthorizedOperation|AuthorizationError|not authorized/i;

/** Runs one probe; an error becomes an unknown verdict that says what was in the way. */
export async function runProbe<World>(
  level: Level,
  probe: Probe<World>,
  world: World,
  now: () => number,
): Promise<ProbeResult> {
  const assumption: Assumption = requireAssumption(probe.assumption);
  const started = now();
  const finding = await probe.run(world).catch((error: Error): Finding => {
    const text = `${error.name}: ${error.message}`;
    return unknown(assumption.claim, DENIED.test(text) ? `the caller lacks a permission: ${text}` : text);
  });
  const seconds = Math.round((now() - started) / 100) / 10;
  return { id: `${level}/${assumption.id}`, assumption: assumption.id, ...finding, seconds };
}
