/** What lies at `path` in a document; undefined where nothing does. */
export function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
}
