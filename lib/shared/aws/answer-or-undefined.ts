/** Awaits a service call and returns undefined when it fails with one of the given error names, which mean that nothing was found. */
export async function answerOrUndefined<T>(answer: Promise<T>, ...nothing: string[]): Promise<T | undefined> {
  try {
    return await answer;
  } catch (cause) {
    if (nothing.includes((cause as Error).name)) return undefined;
    throw cause;
  }
}
