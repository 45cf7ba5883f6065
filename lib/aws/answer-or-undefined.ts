/** The answer of a service; undefined where it refuses with one of these names, which say that there is nothing of the kind. */
export async function answerOrUndefined<T>(answer: Promise<T>, ...nothing: string[]): Promise<T | undefined> {
  try {
    return await answer;
  } catch (cause) {
    if (nothing.includes((cause as Error).name)) return undefined;
    throw cause;
  }
}
