/** Candidates of a short list are all shown when none of them is near. */
const SHORT_LIST = 30;

/**
 * What somebody may have meant by `word`: the `limit` candidates with the most similar spelling, best first; else those that contain the word,
 * as `ml.p5.48xlarge` contains `p5`. If there are none, all candidates of a short list, and the least different of a long one.
 */
export function nearest(word: string, candidates: readonly string[], limit = 3): string[] {
  const start = plain(word);
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(start, plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const near = ranked.filter(({ distance }) => distance <= mostEdits(start));
  const containing = ranked.filter(({ candidate }) => start.length > 1 && plain(candidate).includes(start));
  const alike = near.length > 0 ? near : containing;
  if (alike.length === 0 && candidates.length <= SHORT_LIST) return [...candidates];
  return (alike.length > 0 ? alike : ranked).slice(0, limit).map(({ candidate }) => candidate);
}

/** Whether two words are spellings of one name. */
export const isSameWord = (word: string, other: string): boolean => plain(word) === plain(other);

/** Whether a word may be a misspelling of another. */
export const isNear = (word: string, other: string): boolean =>
  editDistance(plain(word), plain(other)) <= mostEdits(plain(word));

const mostEdits = (word: string): number => Math.max(1, Math.floor(word.length / 3));

/** Longer than every name; the time of a comparison grows with the length of the word. */
const LONGEST = 100;

/** Spellings of one name: instance_type, instance-type, instanceType. */
const plain = (word: string) => word.slice(0, LONGEST).toLowerCase().replace(/[-_]/g, '');

/** Levenshtein distance of two short strings. */
function editDistance(a: string, b: string): number {
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
