/**
 * Keys of records and attempts whose name in the run table is older than their name in the code. Items keep the older name, because a rolled
 * back control plane reads what this one wrote.
 */
const STORED_NAMES: Readonly<Record<string, string>> = {
  capacityOptionId: 'rungId',
  capacityOptions: 'ladder',
  heartbeatAt: 'beatAt',
  reservation: 'roomFor',
  silentHeartbeat: 'silentBeat',
  writesHeartbeats: 'beats',
};
const NAMES = new Map(Object.entries(STORED_NAMES).map(([name, stored]) => [stored, name]));
const STORED = new Map(Object.entries(STORED_NAMES));

/** A record or an attempt with the keys of the run table. */
export const toStoredNames = (document: object): object => renamed(document, STORED);

/** What the run table contains, with the keys of the code. */
export const fromStoredNames = <T>(document: T): T => renamed(document, NAMES);

function renamed<T>(value: T, names: ReadonlyMap<string, string>): T {
  if (Array.isArray(value)) return value.map((one) => renamed(one, names)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    names.get(key) ?? key,
    // Its keys are the user's own.
    key === 'tags' ? inner : renamed(inner, names),
  ]);
  return Object.fromEntries(entries) as T;
}
