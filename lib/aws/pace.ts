/** Results of `work` over all items, in their order, with at most `atOnce` of them under way. The first failure ends it. */
export async function eachInTurn<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let place = next++; place < items.length; place = next++) results[place] = await work(items[place] as T);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
