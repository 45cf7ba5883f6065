/**
 * Applies `work` to all items with at most `atOnce` calls in progress, and returns the results in order. After a failure it starts no
 * further call, waits for those in progress, and throws the error.
 */
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
  const workers = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  const failed = workers.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
  return results;
}
