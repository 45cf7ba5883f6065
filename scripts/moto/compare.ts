import { type Answer, type Call, nameOf } from './call';

/** How the answers to one call differ. */
export interface Difference {
  call: string;
  /** What differs: `error`, or the path of a member. */
  at: string;
  ministack: string;
  moto: string;
}

/** Every difference between two plays of the same calls. */
export function differences(
  calls: readonly Call[],
  ministack: readonly Answer[],
  moto: readonly Answer[],
): Difference[] {
  return calls.flatMap((call, i) => {
    const [one, other] = [ministack[i], moto[i]];
    return one && other ? ofCall(nameOf(call), one, other) : [];
  });
}

function ofCall(call: string, one: Answer, other: Answer): Difference[] {
  const outcome = ({ status, error }: Answer) => `${status}${error ? ` ${error}` : ''}`;
  if (outcome(one) !== outcome(other)) return [{ call, at: 'outcome', ministack: outcome(one), moto: outcome(other) }];
  const paths = [...new Set([...Object.keys(one.members), ...Object.keys(other.members)])].sort();
  return paths.flatMap((at) => {
    const [a = 'absent', b = 'absent'] = [one.members[at], other.members[at]];
    return a === b ? [] : [{ call, at, ministack: a, moto: b }];
  });
}
