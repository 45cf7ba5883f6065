/** The `limit` candidates with the spelling most similar to `word`, best first. */
export function nearest(word: string, candidates: readonly string[], limit = 3): string[] {
  const start = word.slice(0, LONGEST);
  return [...candidates]
    .map((candidate) => ({ candidate, distance: editDistance(start, candidate) }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, limit)
    .map((c) => c.candidate);
}

/** Longer than every name; the time of a comparison grows with the length of the word. */
const LONGEST = 100;

/** Levenshtein distance of two short strings. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitute, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
