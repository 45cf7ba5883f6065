import type { RunOutcome } from './outcome';

/**
 * The sandbox learns of steps and looks at runs at other moments of the same minutes, and leaves most ticks out at which nothing is decided. So
 * far apart may be what texts say of steps (two minutes of them), of minutes, and of what was spent.
 */
const MAX_STEPS = 12;
const MAX_MINUTES = 12;
const MEASURED = /(?<=step )\d+|\d+(?= min\b)|(?<=spent \$)[\d.]+/g;
/** Share of what was spent by then: a commit may be seen one tick earlier. */
const MAX_SPENT = 0.03;

/** The outcome of the sandbox with the simulation's own numbers where they are near enough; everything else stays, to be compared. */
export function nearest(seen: RunOutcome, simulated: RunOutcome | undefined): RunOutcome {
  if (!simulated) return seen;
  const texts = (key: 'attempts' | 'decisions') =>
    seen[key].map((text, i) => withNumbersOf(text, simulated[key][i] ?? ''));
  return {
    ...seen,
    reason: withNumbersOf(seen.reason, simulated.reason),
    attempts: texts('attempts'),
    decisions: texts('decisions'),
  };
}

function withNumbersOf(text: string, other: string): string {
  const numbers = other.match(MEASURED) ?? [];
  let at = 0;
  return text.replace(MEASURED, (number, place: number) => {
    const theirs = numbers[at++] ?? number;
    const before = text.slice(0, place);
    const most = before.endsWith('$') ? MAX_SPENT * Number(theirs) : before.endsWith('step ') ? MAX_STEPS : MAX_MINUTES;
    return Math.abs(Number(number) - Number(theirs)) <= most ? theirs : number;
  });
}
