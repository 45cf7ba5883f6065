/**
 * A pure function of a text that remembers its last results: the documents of the run table are read far more often than they change. What
 * it gives is shared, so that nobody may change it.
 * @param most results that are kept; the oldest goes first
 */
export function remember<T>(read: (text: string) => T, most = 500): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const made = read(text);
    known.set(text, made);
    if (known.size > most) known.delete(known.keys().next().value as string);
    return made;
  };
}
