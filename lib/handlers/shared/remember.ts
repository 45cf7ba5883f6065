/**
 * A pure function of a text that remembers its last results: the documents of the run table are read far more often than they change. What
 * it gives is shared, so that nobody may change it.
 * @param most results that are kept; the oldest goes first
 */
export function remember<T>(read: (text: string) => T, most = 500): Remembered<T> {
  const known = new Map<string, T>();
  const keep = (text: string, made: T) => {
    known.set(text, made);
    if (known.size > most) known.delete(known.keys().next().value as string);
    return made;
  };
  return Object.assign((text: string) => known.get(text) ?? keep(text, read(text)), { keep });
}

/** A function that remembers what it gave. */
export interface Remembered<T> {
  (text: string): T;
  /** What the text says is known already: it was just written. */
  keep(text: string, made: T): T;
}
