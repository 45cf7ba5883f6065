/** The items that no other item beats in both figures, ordered by the first; of equal items the first stays. */
export function paretoFront<T>(items: readonly T[], first: (item: T) => number, second: (item: T) => number): T[] {
  const ordered = [...items].sort((a, b) => first(a) - first(b) || second(a) - second(b));
  const front: T[] = [];
  let best = Number.POSITIVE_INFINITY;
  for (const item of ordered) {
    if (second(item) >= best) continue;
    front.push(item);
    best = second(item);
  }
  return front;
}
