/** The value of a JSON text; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Adds to `given` what it lacks, from `defaults`, section by section. Lists are not merged; null counts as a value. */
export function fill<T>(given: T, defaults: T): T {
  if (given === undefined) return defaults;
  if (!isGroup(given) || !isGroup(defaults)) return given;
  const keys = new Set([...Object.keys(defaults), ...Object.keys(given)]);
  const filled = [...keys].map((key) => [key, fill(given[key], defaults[key])]);
  return Object.fromEntries(filled.filter(([, value]) => value !== undefined)) as T;
}

/** Whether a value is a section: neither a list, nor a value without keys. */
export const isGroup = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
