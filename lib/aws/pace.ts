/** Results of `work` over all items, in their order, with at most `atOnce` of them under way. After the first failure none is begun. */
export async function eachInTurn<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let place = next++; place < items.length; place = next++) {
      try {
        results[place] = await work(items[place] as T);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
