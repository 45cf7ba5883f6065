/** The items that no other item beats in both values, sorted by the first value; of equal items the first is kept. */
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
