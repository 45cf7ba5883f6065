import type { Assumption, Level } from './assumption';
import { requireAssumption } from './assumptions';

/** Whether an assumption holds; `unknown` when the probe could not determine it. */
export type Verdict = 'holds' | 'differs' | 'unknown';

/** Result of one check of an account. */
export interface Finding {
  readonly verdict: Verdict;
  /** The expected result, in terms of the measurement. */
  readonly expected: string;
  /** The actual result, without secrets and account ids. */
  readonly seen: string;
}

/** Tests one assumption. A probe never throws for a response of the account: every response is a finding. */
export interface Probe<World> {
  /** Id of the assumption. */
  readonly assumption: string;
  run(world: World): Promise<Finding>;
}

/** One line of the record and of the `--json` output. */
export interface ProbeResult extends Finding {
  /** `<level>/<assumption>`. */
  readonly id: string;
  /** Anchor in docs/assumptions.md. */
  readonly assumption: string;
  readonly seconds: number;
}

/** A finding that depends on a condition. */
export const holdsIf = (holds: boolean, expected: string, seen: string): Finding => ({
  verdict: holds ? 'holds' : 'differs',
  expected,
  seen,
});

/** A finding of a probe without a result, with the reason. */
export const unknown = (expected: string, seen: string): Finding => ({ verdict: 'unknown', expected, seen });

/** At most five items of a list, and the number of further items. */
export function firstFive(items: readonly string[], separator = '; '): string {
  const rest = items.length - 5;
  return [...items.slice(0, 5), ...(rest > 0 ? [`and ${rest} more`] : [])].join(separator);
}

const DENIED = /AccessDenied|UnauthorizedOperation|AuthorizationError|not authorized/i;

/** Runs one probe; an error becomes an unknown verdict with the reason. */
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
