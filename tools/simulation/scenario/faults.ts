import { type Issue, issue, orList } from '../../../lib/core/config/issue';
import type { Fault } from './schema';

/** For each kind of fault: the key that selects it, the other keys that it requires, and its optional keys. */
const KINDS: readonly {
  by: readonly (keyof Fault)[];
  one?: readonly (keyof Fault)[];
  may: readonly (keyof Fault)[];
}[] = [
  { by: ['call'], one: ['error', 'answerLost', 'takesSeconds', 'empty'], may: ['key', 'nth'] },
  {
    by: ['job'],
    one: ['ends', 'status', 'hangs', 'loses', 'stopTakesMinutes', 'beatsWithout', 'beats'],
    may: ['reason', 'secondaryStatus', 'minutes', 'silent', 'count'],
  },
  { by: ['describeLagSeconds', 'indexLagSeconds'], may: [] },
  { by: ['kill'], may: ['afterEffect', 'times'] },
  { by: ['deleteJob'], may: [] },
  { by: ['stored'], one: ['without', 'poison'], may: [] },
  { by: ['clock'], may: [] },
  { by: ['taken'], may: [] },
  { by: ['events'], may: ['minutes'] },
];
const ALWAYS: readonly (keyof Fault)[] = ['at', 'to'];

/** Keys that are only valid together with another one: `reason` with `ends`. */
const BESIDE: Readonly<Partial<Record<keyof Fault, keyof Fault>>> = {
  reason: 'ends',
  secondaryStatus: 'ends',
  silent: 'hangs',
  count: 'loses',
};

/** Issues about the combination of keys of one fault; each value by itself is already valid. */
export function checkFault(fault: Fault, path: string): Issue[] {
  const keys = (Object.keys(fault) as (keyof Fault)[]).filter((key) => fault[key] !== undefined);
  const kinds = KINDS.filter(({ by }) => by.some((key) => keys.includes(key)));
  const [kind] = kinds;
  if (!kind || kinds.length > 1) {
    const names = orList(KINDS.flatMap(({ by }) => by));
    const got = { got: keys.length === 0 ? 'nothing' : keys.join(', ') };
    const found = {
      ...got,
      must: `must say what goes wrong by exactly one of ${names}`,
      fix: 'write one fault an entry',
    };
    return [issue('scenario/fault', 'error', path, found)];
  }
  const known = [...ALWAYS, ...kind.by, ...(kind.one ?? []), ...kind.may];
  return [
    ...keys.filter((key) => !known.includes(key)).map((key) => misplaced(path, key, kind.by)),
    ...whatHappens(keys, kind, path),
    ...timesInOrder(fault, path),
  ];
}

const misplaced = (path: string, key: string, by: readonly string[]): Issue =>
  issue('scenario/fault', 'error', `${path}.${key}`, {
    must: `must not stand beside ${orList(by)}`,
    fix: 'leave it out, or write a fault of its own',
  });

function whatHappens(keys: readonly (keyof Fault)[], kind: (typeof KINDS)[number], path: string): Issue[] {
  const happens = (kind.one ?? []).filter((key) => keys.includes(key));
  const alone = keys.filter((key) => {
    const other = BESIDE[key];
    return other !== undefined && !keys.includes(other) && kind.may.includes(key);
  });
  return [
    ...(kind.one && happens.length !== 1
      ? [
          issue('scenario/fault', 'error', path, {
            must: `must have exactly one of ${orList(kind.one)} beside ${orList(kind.by)}`,
            got: happens.length === 0 ? 'none' : happens.join(', '),
            fix: 'say what happens',
          }),
        ]
      : []),
    ...alone.map((key) =>
      issue('scenario/fault', 'error', `${path}.${key}`, {
        must: `must stand beside ${BESIDE[key]}`,
        fix: 'leave it out',
      }),
    ),
  ];
}

function timesInOrder({ at = 0, to }: Fault, path: string): Issue[] {
  if (to === undefined || to >= at) return [];
  return [
    issue('scenario/time', 'error', `${path}.to`, { must: 'must not be before at', got: `${to} s`, fix: 'swap them' }),
  ];
}
